package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
)

func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "localhost"},
		DNSNames:     []string{"localhost"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func serve() error {
	cert, err := certificate()
	if err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	server := &webtransport.Server{
		H3: &http3.Server{
			Handler:   mux,
			TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{cert}}),
		},
		ApplicationProtocols: []string{protocol},
		CheckOrigin:          func(*http.Request) bool { return true },
	}
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		session, err := server.Upgrade(w, r)
		if err != nil {
			log.Println(err)
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		go answerSession(session)
	})
	fingerprint := sha256.Sum256(cert.Certificate[0])
	fmt.Printf("{\"port\": %d, \"fingerprint\": \"%x\"}\n", conn.LocalAddr().(*net.UDPAddr).Port, fingerprint)
	return server.Serve(conn)
}

func answerSession(session *webtransport.Session) {
	ctx := session.Context()
	go func() {
		for {
			payload, err := session.ReceiveDatagram(ctx)
			if err != nil {
				return
			}
			_ = session.SendDatagram(payload)
		}
	}()
	go func() {
		for {
			stream, err := session.AcceptUniStream(ctx)
			if err != nil {
				return
			}
			go func() {
				data, err := io.ReadAll(io.LimitReader(stream, limit))
				if err == nil {
					err = sendUni(session, data)
				}
				report(err)
			}()
		}
	}()
	var err error
	for {
		var stream *webtransport.Stream
		if stream, err = session.AcceptStream(context.Background()); err != nil {
			break
		}
		go func() { report(answer(session, stream)) }()
	}
	var closed *webtransport.SessionError
	if errors.As(err, &closed) && closed.Remote {
		fmt.Printf("{\"closed_by_peer\": %d, \"reason\": %q}\n", closed.ErrorCode, closed.Message)
	} else {
		fmt.Println("{\"closed\": true}")
	}
}

func report(err error) {
	if err != nil {
		log.Println(err)
	}
}

func sendUni(session *webtransport.Session, data []byte) error {
	stream, err := session.OpenUniStreamSync(session.Context())
	if err != nil {
		return err
	}
	if _, err := stream.Write(data); err != nil {
		return err
	}
	return stream.Close()
}

func answer(session *webtransport.Session, stream *webtransport.Stream) error {
	data, err := io.ReadAll(io.LimitReader(stream, limit))
	var reset *webtransport.StreamError
	if errors.As(err, &reset) {
		stream.CancelWrite(reset.ErrorCode + 1)
		return nil
	}
	if err != nil {
		return err
	}
	reply := data
	switch string(data) {
	case "reset":
		stream.CancelWrite(42)
		return nil
	case "close":
		return session.CloseWithError(1234, "good bye")
	case "bi":
		own, err := session.OpenStreamSync(session.Context())
		if err != nil {
			return err
		}
		if _, err := own.Write([]byte(greeting)); err != nil {
			return err
		}
		if err := own.Close(); err != nil {
			return err
		}
		if reply, err = io.ReadAll(io.LimitReader(own, limit)); err != nil {
			return err
		}
	case "uni":
		if err := sendUni(session, []byte(greeting)); err != nil {
			return err
		}
		reply = nil
	}
	if _, err := stream.Write(reply); err != nil {
		return err
	}
	return stream.Close()
}
