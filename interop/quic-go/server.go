package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// The longest request of HTTP/0.9.
const maxRequest = 4096

func runServer(testCase string) error {
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	listener, transport, err := listen(testCase)
	if err != nil {
		return err
	}
	// Closes all connections.
	defer transport.Close()
	if testCase == "http3" {
		server := &http3.Server{Handler: http.FileServer(http.Dir(os.Getenv("WWW")))}
		go server.ServeListener(listener)
		<-stopped.Done()
		return server.Close()
	}
	for {
		conn, err := listener.Accept(stopped)
		if stopped.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go serve(conn)
	}
}

func listen(testCase string) (*quic.EarlyListener, *quic.Transport, error) {
	config, err := tlsConfig(testCase)
	if err != nil {
		return nil, nil, err
	}
	certs := os.Getenv("CERTS")
	chain, err := tls.LoadX509KeyPair(filepath.Join(certs, "cert.pem"), filepath.Join(certs, "priv.key"))
	if err != nil {
		return nil, nil, err
	}
	config.Certificates = []tls.Certificate{chain}
	address, err := net.ResolveUDPAddr("udp", os.Getenv("ADDRESS"))
	if err != nil {
		return nil, nil, err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return nil, nil, err
	}
	transport := &quic.Transport{
		Conn:                socket,
		VerifySourceAddress: func(net.Addr) bool { return testCase == "retry" },
	}
	listener, err := transport.ListenEarly(config, quicConfig())
	return listener, transport, err
}

// Serves the requests of one connection over HTTP/0.9.
func serve(conn *quic.Conn) {
	for {
		stream, err := conn.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go answer(stream)
	}
}

func answer(stream *quic.Stream) {
	file, err := requested(stream)
	if err != nil {
		stream.CancelRead(0)
		stream.CancelWrite(0)
		return
	}
	defer file.Close()
	if _, err := io.Copy(stream, file); err != nil {
		stream.CancelWrite(0)
		return
	}
	stream.Close()
}

// Reads a request and opens its file.
func requested(stream *quic.Stream) (*os.File, error) {
	request, err := io.ReadAll(io.LimitReader(stream, maxRequest))
	if err != nil {
		return nil, err
	}
	name, isGet := strings.CutPrefix(strings.TrimSpace(string(request)), "GET ")
	if !isGet {
		return nil, os.ErrInvalid
	}
	return os.Open(filepath.Join(os.Getenv("WWW"), path.Base(name)))
}
