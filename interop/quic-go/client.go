package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const ticketTimeout = 10 * time.Second

// A client: what it needs for connections to the server.
type client struct {
	transport *quic.Transport
	server    net.Addr
	tls       *tls.Config
	// Told when a session ticket has been stored.
	tickets chan struct{}
}

func runClient(testCase string) error {
	c, err := newClient(testCase)
	if err != nil {
		return err
	}
	// Returns once the packets of closed connections have been sent.
	defer c.transport.Close()
	urls := strings.Fields(os.Getenv("REQUESTS"))
	switch testCase {
	case "http3":
		return c.fetchHTTP3(urls)
	case "multiconnect":
		for _, url := range urls {
			if err := c.connectAndFetch([]string{url}); err != nil {
				return err
			}
		}
		return nil
	case "resumption", "zerortt":
		return c.fetchResumed(urls, testCase == "zerortt")
	default:
		return c.connectAndFetch(urls)
	}
}

func newClient(testCase string) (*client, error) {
	config, err := tlsConfig(testCase)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(os.Getenv("CERTS"), "ca.pem"))
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(authority) {
		return nil, errors.New("no certificate in ca.pem")
	}
	config.ServerName = "localhost"
	tickets := make(chan struct{}, 1)
	config.ClientSessionCache = &sessionCache{tls.NewLRUClientSessionCache(1), tickets}

	server, err := net.ResolveUDPAddr("udp", os.Getenv("ADDRESS"))
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: anyAddress(server.IP)})
	if err != nil {
		return nil, err
	}
	return &client{&quic.Transport{Conn: socket}, server, config, tickets}, nil
}

// The wildcard address of the same family.
func anyAddress(address net.IP) net.IP {
	if address.To4() != nil {
		return net.IPv4zero
	}
	return net.IPv6unspecified
}

// Tells a channel about every session ticket that it stores.
type sessionCache struct {
	tls.ClientSessionCache
	stored chan<- struct{}
}

func (c *sessionCache) Put(key string, session *tls.ClientSessionState) {
	c.ClientSessionCache.Put(key, session)
	if session == nil {
		return
	}
	select {
	case c.stored <- struct{}{}:
	default:
	}
}

// One connection for all files.
func (c *client) connectAndFetch(urls []string) error {
	conn, err := c.transport.Dial(context.Background(), c.server, c.tls, quicConfig())
	if err != nil {
		return err
	}
	defer conn.CloseWithError(0, "")
	return fetchAll(conn, urls)
}

// The first file on one connection, the rest on one that resumes its session.
func (c *client) fetchResumed(urls []string, early bool) error {
	if err := c.fetchForTicket(urls[:1]); err != nil {
		return err
	}
	dial := c.transport.Dial
	if early {
		dial = c.transport.DialEarly
	}
	conn, err := dial(context.Background(), c.server, c.tls, quicConfig())
	if err != nil {
		return err
	}
	defer conn.CloseWithError(0, "")
	if err := fetchAll(conn, urls[1:]); err != nil {
		return err
	}
	if state := conn.ConnectionState(); !state.TLS.DidResume || state.Used0RTT != early {
		return fmt.Errorf("resumed: %t, 0-RTT: %t", state.TLS.DidResume, state.Used0RTT)
	}
	return nil
}

// Fetches the files and waits for a session ticket.
func (c *client) fetchForTicket(urls []string) error {
	conn, err := c.transport.Dial(context.Background(), c.server, c.tls, quicConfig())
	if err != nil {
		return err
	}
	defer conn.CloseWithError(0, "")
	if err := fetchAll(conn, urls); err != nil {
		return err
	}
	select {
	case <-c.tickets:
		return nil
	case <-time.After(ticketTimeout):
		return errors.New("no session ticket")
	}
}

// Fetches in parallel over HTTP/0.9.
func fetchAll(conn *quic.Conn, urls []string) error {
	results := make(chan error, len(urls))
	for _, url := range urls {
		// Not in the goroutine, so that no more streams wait than are allowed.
		stream, err := conn.OpenStreamSync(context.Background())
		if err != nil {
			return err
		}
		go func() { results <- fetch(stream, url) }()
	}
	return allErrors(results, len(urls))
}

func fetch(stream *quic.Stream, from string) error {
	location, err := url.Parse(from)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stream, "GET %s\r\n", location.Path); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	return save(location.Path, stream)
}

// Fetches in parallel over HTTP/3.
func (c *client) fetchHTTP3(urls []string) error {
	transport := &http3.Transport{
		TLSClientConfig: c.tls,
		QUICConfig:      quicConfig(),
		Dial: func(ctx context.Context, _ string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
			return c.transport.DialEarly(ctx, c.server, tlsConfig, config)
		},
	}
	defer transport.Close()
	http := &http.Client{Transport: transport}
	results := make(chan error, len(urls))
	for _, url := range urls {
		go func() { results <- fetchOverHTTP3(http, url) }()
	}
	return allErrors(results, len(urls))
}

func fetchOverHTTP3(client *http.Client, from string) error {
	response, err := client.Get(from)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", from, response.Status)
	}
	return save(response.Request.URL.Path, response.Body)
}

// Saves a file under the last part of its path.
func save(name string, body io.Reader) error {
	file, err := os.Create(filepath.Join(os.Getenv("DOWNLOADS"), path.Base(name)))
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, body); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
