// Command connect-ip is one end of a tunnel of IP packets over connect-ip-go: interop/masque/run.sh runs it.
//
//	connect-ip serve ADDRESS CERT KEY DEVICE NETWORK,... ROUTE,...
//	connect-ip connect ADDRESS TOKEN DEVICE
//
// NETWORK is an address that its client gets, with the length of its prefix.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/quic-go/connect-ip-go"
	"golang.org/x/sys/unix"
)

// Both ends know this path: a template without variables, which is what the library has.
const path = "/.well-known/masque/ip/*/*/"

func main() {
	log.SetFlags(0)
	var err error
	switch {
	case len(os.Args) == 8 && os.Args[1] == "serve":
		err = serve(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6], os.Args[7])
	case len(os.Args) == 5 && os.Args[1] == "connect":
		err = connect(context.Background(), os.Args[2], os.Args[3], os.Args[4])
	default:
		err = errors.New("usage: connect-ip serve ADDRESS CERT KEY DEVICE NETWORK,... ROUTE,... | connect ADDRESS TOKEN DEVICE")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// open makes a TUN device.
func open(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, fmt.Errorf("no device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), ip("link", "set", name, "up", "mtu", "1280")
}

func ip(arguments ...string) error {
	if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return nil
}

func prefixes(text string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, part := range strings.Split(text, ",") {
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, err
		}
		all = append(all, prefix)
	}
	return all, nil
}

// carry hands packets on in both directions until one of them fails.
func carry(conn *connectip.Conn, device *os.File) error {
	failed := make(chan error, 2)
	go func() {
		packet := make([]byte, 1500)
		for {
			size, err := conn.ReadPacket(packet)
			if err != nil {
				failed <- fmt.Errorf("the tunnel is over: %w", err)
				return
			}
			if _, err := device.Write(packet[:size]); err != nil {
				log.Printf("the kernel does not take a packet: %v", err)
			}
		}
	}()
	go func() {
		packet := make([]byte, 1500)
		for {
			size, err := device.Read(packet)
			if err != nil {
				failed <- fmt.Errorf("the device is gone: %w", err)
				return
			}
			answer, err := conn.WritePacket(packet[:size])
			if err != nil {
				failed <- fmt.Errorf("the tunnel is over: %w", err)
				return
			}
			if len(answer) > 0 {
				_, _ = device.Write(answer)
			}
		}
	}()
	return <-failed
}
