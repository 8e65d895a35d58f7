package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/quic-go/connect-ip-go"
	"github.com/yosida95/uritemplate/v3"
)

// connect is the machine's end: it takes the addresses and the routes that the proxy tells.
func connect(ctx context.Context, address, token, device string) error {
	template, err := uritemplate.New("https://" + address + path)
	if err != nil {
		return err
	}
	request, err := connectip.NewRequest(ctx, template)
	if err != nil {
		return err
	}
	request.Header().Set("Proxy-Authorization", "Bearer "+token)
	transport := connectip.Transport{
		TLSClientConfig: &tls.Config{NextProtos: []string{"h3"}, InsecureSkipVerify: true},
	}
	conn, response, err := transport.Dial(request)
	if err != nil {
		if response != nil {
			return fmt.Errorf("%w: %s", err, response.Header.Get("Proxy-Status"))
		}
		return err
	}
	defer conn.Close()
	soon, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	assigned, err := conn.ReceiveAddressAssignment(soon)
	if err != nil {
		return fmt.Errorf("no addresses: %w", err)
	}
	routes, err := conn.Routes(soon)
	if err != nil {
		return fmt.Errorf("no routes: %w", err)
	}
	tun, err := open(device)
	if err != nil {
		return err
	}
	for _, one := range assigned {
		fmt.Println("assigned", one.IPPrefix)
		if err := ip("addr", "add", one.IPPrefix.String(), "dev", device); err != nil {
			return err
		}
	}
	for _, route := range routes {
		fmt.Println("route", route.StartIP, route.EndIP, route.IPProtocol)
		for _, prefix := range route.Prefixes() {
			if err := ip("route", "add", prefix.String(), "dev", device); err != nil {
				return err
			}
		}
	}
	return carry(conn, tun)
}
