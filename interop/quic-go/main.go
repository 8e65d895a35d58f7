// An endpoint of the interoperability matrix (see ../README.md) with quic-go.
package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlog"
)

const unsupported = 127

// What the interop runner calls HTTP/0.9.
const http09 = "hq-interop"

// Longer than any outage. A handshake may take twice as long.
const idleTimeout = time.Minute

// The test cases of both roles. quic-go marks packets for ECN without being told, and updates its keys after 100
// packets. It neither changes the version during the handshake nor announces a preferred address.
var common = []string{
	"handshake", "transfer", "chacha20", "retry", "resumption", "zerortt", "http3", "ecn", "multiconnect",
}

func main() {
	role, testCase := os.Getenv("ROLE"), os.Getenv("TESTCASE")
	run, only := runClient, "keyupdate"
	if role == "server" {
		run, only = runServer, "multiplexing"
	}
	if testCase != only && !slices.Contains(common, testCase) {
		os.Exit(unsupported)
	}
	if testCase == "chacha20" {
		onlyChaCha20()
	}
	if err := run(testCase); err != nil {
		fmt.Fprintln(os.Stderr, "quic-go:", err)
		os.Exit(1)
	}
}

// What both roles configure of QUIC. The windows are smaller than the files and grow.
func quicConfig() *quic.Config {
	return &quic.Config{
		Versions:             []quic.Version{quic.Version1},
		HandshakeIdleTimeout: idleTimeout,
		MaxIdleTimeout:       idleTimeout,
		Allow0RTT:            true,
		Tracer:               qlog.DefaultConnectionTracer,
	}
}

// What both roles configure of TLS.
func tlsConfig(testCase string) (*tls.Config, error) {
	config := &tls.Config{NextProtos: []string{http09}}
	if testCase == "http3" {
		config.NextProtos = []string{http3.NextProtoH3}
	}
	keyLog, err := openKeyLog()
	config.KeyLogWriter = keyLog
	return config, err
}

// The file named by SSLKEYLOGFILE, or nothing.
func openKeyLog() (io.Writer, error) {
	name := os.Getenv("SSLKEYLOGFILE")
	if name == "" {
		return nil, nil
	}
	return os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// The errors among so many results, or nil.
func allErrors(results <-chan error, count int) error {
	var all error
	for range count {
		all = errors.Join(all, <-results)
	}
	return all
}
