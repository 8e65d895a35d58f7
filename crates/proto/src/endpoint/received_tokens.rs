//! The tokens that servers gave this client for its next connection (RFC 9000 section 8.1.3).

use std::collections::{HashMap, VecDeque};

/// Servers whose tokens are kept; the server that was heard of first is forgotten first.
pub const MAX_TOKEN_SERVERS: usize = 256;
/// Tokens kept of each server; newer ones displace older ones.
pub const MAX_TOKENS_PER_SERVER: usize = 2;

/// Tokens by server name.
#[derive(Debug, Default)]
pub struct ReceivedTokens {
    tokens: HashMap<String, VecDeque<Vec<u8>>>,
    /// The keys of `tokens`, oldest first.
    order: VecDeque<String>,
}

impl ReceivedTokens {
    /// Keeps a token of `server`.
    pub fn insert(&mut self, server: &str, token: Vec<u8>) {
        if !self.tokens.contains_key(server) {
            if self.order.len() >= MAX_TOKEN_SERVERS
                && let Some(oldest) = self.order.pop_front()
            {
                self.tokens.remove(&oldest);
            }
            self.order.push_back(server.to_owned());
        }
        let tokens = self.tokens.entry(server.to_owned()).or_default();
        if tokens.len() >= MAX_TOKENS_PER_SERVER {
            tokens.pop_front();
        }
        tokens.push_back(token);
    }

    /// Takes the newest token of `server`. Using a token twice would let observers link the connections.
    pub fn take(&mut self, server: &str) -> Option<Vec<u8>> {
        let tokens = self.tokens.get_mut(server)?;
        let token = tokens.pop_back();
        if tokens.is_empty() {
            self.tokens.remove(server);
            self.order.retain(|name| name != server);
        }
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_used_once_and_only_for_its_server() {
        let mut store = ReceivedTokens::default();
        for token in [1, 2, 3] {
            store.insert("a", vec![token]);
        }
        assert_eq!(store.take("b"), None);
        assert_eq!(store.take("a"), Some(vec![3]));
        assert_eq!(store.take("a"), Some(vec![2]));
        assert_eq!(store.take("a"), None);
        assert!(store.order.is_empty());
    }

    #[test]
    fn a_flood_of_tokens_stays_within_bounds() {
        let mut store = ReceivedTokens::default();
        for n in 0..10 * MAX_TOKEN_SERVERS {
            for token in 0..4 {
                store.insert(&n.to_string(), vec![token]);
            }
        }
        assert_eq!((store.tokens.len(), store.order.len()), (MAX_TOKEN_SERVERS, MAX_TOKEN_SERVERS));
        assert!(store.tokens.values().all(|tokens| tokens.len() == MAX_TOKENS_PER_SERVER));
    }
}
