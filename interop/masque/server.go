package main

import (
	"context"
	"crypto/tls"
	"log"
	"net/http"
	"net/netip"

	"github.com/quic-go/connect-ip-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

// serve is a proxy for one client at a time.
func serve(address, cert, key, device, networks, routes string) error {
	assigned, err := prefixes(networks)
	if err != nil {
		return err
	}
	reachable, err := prefixes(routes)
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	template, err := uritemplate.New("https://" + address + path)
	if err != nil {
		return err
	}
	tun, err := open(device)
	if err != nil {
		return err
	}
	for _, network := range assigned {
		if err := ip("route", "add", network.String(), "dev", device); err != nil {
			return err
		}
	}
	handle := func(w http.ResponseWriter, r *http.Request) {
		log.Printf("%s %s %s", r.Method, r.Proto, r.URL)
		request, err := connectip.ParseProxyRequest(r, template)
		if err != nil {
			log.Printf("refused: %v", err)
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		conn, err := (&connectip.Proxy{}).Proxy(w, request)
		if err != nil {
			log.Printf("no tunnel: %v", err)
			return
		}
		defer conn.Close()
		if err := agree(conn, assigned, reachable); err != nil {
			log.Printf("nothing agreed: %v", err)
			return
		}
		log.Printf("a client left: %v", carry(conn, tun))
	}
	server := http3.Server{
		Addr:            address,
		Handler:         http.HandlerFunc(handle),
		EnableDatagrams: true,
		TLSConfig:       http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350},
	}
	return server.ListenAndServe()
}

// agree tells the client its addresses and routes, and answers its wishes: each gets the address of its version.
func agree(conn *connectip.Conn, assigned, reachable []netip.Prefix) error {
	if err := conn.AssignAddresses(assigned); err != nil {
		return err
	}
	var routes []connectip.IPRoute
	for _, prefix := range reachable {
		routes = append(routes, connectip.IPRoute{StartIP: prefix.Addr(), EndIP: last(prefix)})
	}
	if err := conn.AdvertiseRoute(routes); err != nil {
		return err
	}
	go func() {
		for {
			request, err := conn.ReceiveAddressRequest(context.Background())
			if err != nil {
				return
			}
			var answers []netip.Prefix
			for _, wish := range request.Prefixes {
				var answer netip.Prefix
				for _, own := range assigned {
					if own.Addr().Is4() == wish.Addr().Is4() {
						answer = own
					}
				}
				answers = append(answers, answer)
			}
			if err := request.Respond(answers, nil); err != nil {
				log.Printf("no answer to a wish: %v", err)
			}
		}
	}()
	return nil
}

// last is the last address of a network.
func last(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}
