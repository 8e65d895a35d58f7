package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"
)

func transport(fingerprint string) *webtransport.Transport {
	return &webtransport.Transport{
		ApplicationProtocols: []string{"echo-2", protocol},
		TLSClientConfig: &tls.Config{
			NextProtos:         []string{"h3"},
			InsecureSkipVerify: true,
			VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
				sum := sha256.Sum256(raw[0])
				if hex.EncodeToString(sum[:]) != fingerprint {
					return errors.New("another certificate")
				}
				return nil
			},
		},
	}
}

func check(what string, isSo bool) error {
	if !isSo {
		return fmt.Errorf("wrong: %s", what)
	}
	fmt.Println("ok:", what)
	return nil
}

// begin begins a session. The connection is to be closed by the caller: Transport.Dial would close it together with the
// session, which then may be all that the server hears of.
func begin(ctx context.Context, address, fingerprint string) (*quic.Conn, *webtransport.Session, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, nil, err
	}
	dialer := transport(fingerprint)
	config := &quic.Config{EnableDatagrams: true, EnableStreamResetPartialDelivery: true}
	conn, err := quic.DialAddr(ctx, parsed.Host, dialer.TLSClientConfig, config)
	if err != nil {
		return nil, nil, err
	}
	client, err := dialer.NewClientConn(conn)
	if err != nil {
		return nil, nil, err
	}
	_, session, err := client.Dial(ctx, address, nil)
	return conn, session, err
}

func tryAll(ctx context.Context, address, fingerprint string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, session, err := begin(ctx, address, fingerprint)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseWithError(0, "") }()
	chosen := session.SessionState().ApplicationProtocol
	if err := check("the sub-protocol "+chosen, chosen == protocol); err != nil {
		return err
	}
	if err := tryStreams(ctx, session); err != nil {
		return err
	}
	if err := tryDatagrams(ctx, session); err != nil {
		return err
	}
	if err := session.CloseWithError(99, "that was all"); err != nil {
		return err
	}

	again, session, err := begin(ctx, address, fingerprint)
	if err != nil {
		return err
	}
	defer func() { _ = again.CloseWithError(0, "") }()
	_, _ = ask(ctx, session, []byte("close"))
	_, err = session.AcceptStream(ctx)
	var closed *webtransport.SessionError
	is := errors.As(err, &closed)
	return check(fmt.Sprint("the server's close: ", closed),
		is && closed.Remote && closed.ErrorCode == 1234 && closed.Message == "good bye")
}

func ask(ctx context.Context, session *webtransport.Session, data []byte) ([]byte, error) {
	stream, err := session.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = stream.Write(data)
		_ = stream.Close()
	}()
	return io.ReadAll(io.LimitReader(stream, limit))
}

func receiveUni(ctx context.Context, session *webtransport.Session) ([]byte, error) {
	stream, err := session.AcceptUniStream(ctx)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(stream, limit))
}

func isReset(err error, code webtransport.StreamErrorCode) bool {
	var reset *webtransport.StreamError
	return errors.As(err, &reset) && reset.ErrorCode == code
}

func tryStreams(ctx context.Context, session *webtransport.Session) error {
	data := make([]byte, 1_000_000)
	for at := range data {
		data[at] = byte(at % 251)
	}
	echoed, err := ask(ctx, session, data)
	if err != nil {
		return err
	}
	if err := check("a bidirectional stream", bytes.Equal(echoed, data)); err != nil {
		return err
	}
	if err := sendUni(session, data); err != nil {
		return err
	}
	if echoed, err = receiveUni(ctx, session); err != nil {
		return err
	}
	if err := check("unidirectional streams", bytes.Equal(echoed, data)); err != nil {
		return err
	}
	if err := tryServersStreams(ctx, session); err != nil {
		return err
	}
	_, err = ask(ctx, session, []byte("reset"))
	if err := check(fmt.Sprint("the server's reset: ", err), isReset(err, 42)); err != nil {
		return err
	}
	stream, err := session.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	stream.CancelWrite(7)
	_, err = io.ReadAll(stream)
	return check(fmt.Sprint("the answer to a reset: ", err), isReset(err, 8))
}

func tryServersStreams(ctx context.Context, session *webtransport.Session) error {
	got := make(chan []byte, 1)
	go func() {
		answer, _ := ask(ctx, session, []byte("bi"))
		got <- answer
	}()
	stream, err := session.AcceptStream(ctx)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(stream, limit))
	if err != nil {
		return err
	}
	if _, err := stream.Write([]byte("a reply")); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	answer := <-got
	err = check("a bidirectional stream of the server", string(text) == greeting && string(answer) == "a reply")
	if err != nil {
		return err
	}
	if _, err := ask(ctx, session, []byte("uni")); err != nil {
		return err
	}
	text, err = receiveUni(ctx, session)
	if err != nil {
		return err
	}
	return check("a unidirectional stream of the server", string(text) == greeting)
}

func tryDatagrams(ctx context.Context, session *webtransport.Session) error {
	for attempt := range 20 {
		if err := session.SendDatagram([]byte("a datagram")); err != nil {
			return err
		}
		patience, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		payload, err := session.ReceiveDatagram(patience)
		cancel()
		if err == nil {
			return check(fmt.Sprint("datagram ", attempt), string(payload) == "a datagram")
		}
	}
	return check("datagrams", false)
}
