package main

import (
	"crypto/tls"
	_ "unsafe" // for go:linkname
)

// The Go library does not let its users choose among the cipher suites of TLS 1.3. It keeps the names of these lists
// for quic-go, whose own tests of interoperability change them in the same way.

//go:linkname defaultCipherSuitesTLS13 crypto/tls.defaultCipherSuitesTLS13
var defaultCipherSuitesTLS13 []uint16

//go:linkname defaultCipherSuitesTLS13NoAES crypto/tls.defaultCipherSuitesTLS13NoAES
var defaultCipherSuitesTLS13NoAES []uint16

// Makes TLS_CHACHA20_POLY1305_SHA256 the only cipher suite that is offered and accepted.
func onlyChaCha20() {
	defaultCipherSuitesTLS13 = []uint16{tls.TLS_CHACHA20_POLY1305_SHA256}
	defaultCipherSuitesTLS13NoAES = defaultCipherSuitesTLS13
}
