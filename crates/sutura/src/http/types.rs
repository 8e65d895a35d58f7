//! Conversion between field sections and the types of the `http` crate.

use super::{Code, Error};
use ::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ::http::{Method, StatusCode, Uri, Version, request, response};
use bytes::Bytes;
use sutura_h3::{Field, Fields};

/// The protocol of an extended CONNECT (RFC 9220), such as `websocket`, among the extensions of a
/// request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Protocol(pub String);

/// Fields of connections of HTTP/1.1, which HTTP/3 does not have (RFC 9114 section 4.2).
const CONNECTION_SPECIFIC: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// Adds `headers` to a section. Headers about connections of HTTP/1.1 are left out.
pub(super) fn fields_of<'a>(
    mut fields: Fields,
    headers: impl IntoIterator<Item = (&'a HeaderName, &'a HeaderValue)>,
) -> Fields {
    for (name, value) in headers {
        if !CONNECTION_SPECIFIC.contains(&name.as_str()) {
            fields.push(Field {
                name: Bytes::copy_from_slice(name.as_str().as_bytes()),
                value: Bytes::copy_from_slice(value.as_bytes()),
                sensitive: value.is_sensitive(),
            });
        }
    }
    fields
}

/// The head of a response.
pub(super) fn response_fields(parts: &response::Parts) -> Fields {
    fields_of(Fields::response(parts.status.as_u16()), &parts.headers)
}

/// The head of a request.
pub(super) fn request_fields(parts: &request::Parts) -> Fields {
    let host = parts.headers.get(header::HOST).map(HeaderValue::as_bytes);
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes()).or(host);
    let authority = Bytes::copy_from_slice(authority.unwrap_or_default());
    let method = parts.method.as_str().to_owned();
    let protocol = parts.extensions.get::<Protocol>();
    let mut fields = if parts.method == Method::CONNECT && protocol.is_none() {
        Fields::new().with(":method", method).with(":authority", authority)
    } else {
        let scheme = parts.uri.scheme_str().unwrap_or("https").to_owned();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Fields::request(method, scheme, authority, path)
    };
    if let Some(Protocol(protocol)) = protocol {
        fields = fields.with(":protocol", protocol.clone());
    }
    // `:authority` names the host; a `host` field must not differ from it (RFC 9114 section 4.3.1), and is
    // left out.
    fields_of(fields, parts.headers.iter().filter(|(name, _)| *name != header::HOST))
}

/// The error for a message that HTTP/3 permits and the `http` crate cannot express.
const fn unsupported(reason: &'static str) -> Error {
    Error::Message { code: Code::MESSAGE_ERROR, reason }
}

/// The fields of a section without pseudo-header fields. Several `cookie` fields become one (RFC 9114
/// section 4.2.1).
pub(super) fn trailers_of(fields: Fields) -> Result<HeaderMap, Error> {
    let mut headers: HeaderMap = HeaderMap::with_capacity(fields.len());
    for Field { name, value, sensitive } in fields {
        if name.starts_with(b":") {
            continue;
        }
        let name = HeaderName::from_bytes(&name).map_err(|_| unsupported("field name"))?;
        let mut value =
            HeaderValue::from_maybe_shared(value).map_err(|_| unsupported("field value"))?;
        value.set_sensitive(sensitive);
        match headers.get(header::COOKIE).filter(|_| name == header::COOKIE) {
            Some(before) => {
                let both = [before.as_bytes(), b"; ", value.as_bytes()].concat();
                let sensitive = sensitive || before.is_sensitive();
                let mut both = HeaderValue::from_maybe_shared(Bytes::from(both))
                    .map_err(|_| unsupported("field value"))?;
                both.set_sensitive(sensitive);
                headers.insert(name, both);
            }
            None => drop(headers.append(name, value)),
        }
    }
    Ok(headers)
}

/// The head of a response, with the length of its body if that is known.
pub(super) fn response_of(fields: Fields) -> Result<(response::Parts, Option<u64>), Error> {
    let status = fields.status().and_then(|status| StatusCode::from_u16(status).ok());
    let (mut parts, ()) = ::http::Response::new(()).into_parts();
    parts.status = status.ok_or(unsupported("status"))?;
    parts.version = Version::HTTP_3;
    parts.headers = trailers_of(fields)?;
    let length = length(&parts.headers);
    Ok((parts, length))
}

/// The head of a request, with the length of its body if that is known.
pub(super) fn request_of(fields: Fields) -> Result<(request::Parts, Option<u64>), Error> {
    const TARGET: Error = unsupported("target of the request");
    let get = |name: &str| fields.get(name).filter(|value| !value.is_empty());
    let mut uri = Uri::builder();
    // An asterisk is no URI together with an authority.
    if get(":path") != Some(b"*") {
        if let Some(scheme) = get(":scheme") {
            uri = uri.scheme(scheme);
        }
        if let Some(authority) = get(":authority").or_else(|| get("host")) {
            uri = uri.authority(authority);
        }
    }
    if let Some(path) = get(":path") {
        uri = uri.path_and_query(path);
    }
    let (mut parts, ()) = ::http::Request::new(()).into_parts();
    parts.uri = uri.build().map_err(|_| TARGET)?;
    parts.method = get(":method").and_then(|m| Method::from_bytes(m).ok()).ok_or(TARGET)?;
    parts.version = Version::HTTP_3;
    if let Some(protocol) = get(":protocol") {
        let protocol = String::from_utf8_lossy(protocol).into_owned();
        parts.extensions.insert(Protocol(protocol));
    }
    parts.headers = trailers_of(fields)?;
    let length = length(&parts.headers);
    Ok((parts, length))
}

/// The value of `content-length`, which HTTP/3 has checked.
fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(request: ::http::request::Builder) -> request::Parts {
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn requests_there_and_back() {
        let request = ::http::Request::post("https://example.org:8443/a?b=c")
            .header("host", "example.org:8443")
            .header("te", "trailers")
            .header("connection", "close")
            .header("content-length", "5");
        let fields = request_fields(&parts(request));
        let expected = Fields::request("POST", "https", "example.org:8443", "/a?b=c")
            .with("te", "trailers")
            .with("content-length", "5");
        assert_eq!(fields, expected);
        let (back, length) = request_of(fields).unwrap();
        assert_eq!(back.uri, "https://example.org:8443/a?b=c");
        assert_eq!((back.method, back.version, length), (Method::POST, Version::HTTP_3, Some(5)));
        assert_eq!(back.headers["te"], "trailers");
    }

    #[test]
    fn targets_of_every_form() {
        let relative = ::http::Request::get("/x").header("host", "a");
        let expected = Fields::request("GET", "https", "a", "/x");
        assert_eq!(request_fields(&parts(relative)), expected);
        let (back, _) = request_of(Fields::request("OPTIONS", "https", "a", "*")).unwrap();
        assert_eq!(back.uri, "*");
        let connect = ::http::Request::connect("example.org:443");
        let fields = Fields::new().with(":method", "CONNECT").with(":authority", "example.org:443");
        assert_eq!(request_fields(&parts(connect)), fields);
        assert_eq!(request_of(fields).unwrap().0.uri, "example.org:443");
        let protocol = Protocol("websocket".into());
        let extended = ::http::Request::connect("https://a/chat").extension(protocol.clone());
        let fields = request_fields(&parts(extended));
        assert_eq!(fields.get(":protocol"), Some(&b"websocket"[..]));
        let (back, _) = request_of(fields).unwrap();
        assert_eq!(back.extensions.get::<Protocol>(), Some(&protocol));
    }

    #[test]
    fn cookies_become_one_and_secrets_stay_secrets() {
        let mut fields = Fields::response(200).with("cookie", "a=1").with("x", "1").with("x", "2");
        fields.push(Field { sensitive: true, ..Field::new("cookie", "b=2") });
        let (parts, length) = response_of(fields).unwrap();
        assert_eq!(parts.headers[header::COOKIE], "a=1; b=2");
        assert!(parts.headers[header::COOKIE].is_sensitive());
        assert_eq!((parts.headers.get_all("x").iter().count(), length), (2, None));
        let fields = response_fields(&parts);
        assert!(fields.iter().any(|field| field.name == "cookie" && field.sensitive));
    }
}
