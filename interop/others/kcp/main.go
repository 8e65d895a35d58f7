// A tunnel for TCP connections in KCP, with the settings that kcptun has by default: a KCP session with
// Reed-Solomon coding of 10 packets and 3 of parity for each TCP connection.
//
//	kcp client 127.0.0.1:LISTEN 127.0.0.1:REMOTE
//	kcp server 127.0.0.1:LISTEN 127.0.0.1:TARGET
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"github.com/xtaci/kcp-go/v5"
)

const (
	dataShards   = 10
	parityShards = 3
	mtu          = 1350
	buffer       = 4 << 20
)

// Packets that each end may send and takes.
const (
	clientSends = 128
	clientTakes = 512
	serverSends = 1024
	serverTakes = 1024
)

// cipher is a key that all know: what encryption costs is part of the comparison, secrets are not.
func cipher() kcp.BlockCrypt {
	block, err := kcp.NewAESBlockCrypt(make([]byte, 32))
	if err != nil {
		log.Fatal(err)
	}
	return block
}

// tune has the settings of kcptun's mode "fast".
func tune(session *kcp.UDPSession, sends, takes int) {
	session.SetStreamMode(true)
	session.SetWriteDelay(false)
	session.SetNoDelay(0, 30, 2, 1)
	session.SetMtu(mtu)
	session.SetWindowSize(sends, takes)
	session.SetACKNoDelay(false)
}

// join copies both ways until either end is over.
func join(a, b io.ReadWriteCloser) {
	over := make(chan struct{}, 2)
	for _, way := range [][2]io.ReadWriteCloser{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			over <- struct{}{}
		}()
	}
	<-over
	_ = a.Close()
	_ = b.Close()
	<-over
}

func client(listen, remote string) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		local, err := listener.Accept()
		if err != nil {
			return err
		}
		session, err := kcp.DialWithOptions(remote, cipher(), dataShards, parityShards)
		if err != nil {
			return err
		}
		tune(session, clientSends, clientTakes)
		go join(local, session)
	}
}

func server(listen, target string) error {
	listener, err := kcp.ListenWithOptions(listen, cipher(), dataShards, parityShards)
	if err != nil {
		return err
	}
	_ = listener.SetReadBuffer(buffer)
	_ = listener.SetWriteBuffer(buffer)
	fmt.Println("ready")
	for {
		session, err := listener.AcceptKCP()
		if err != nil {
			return err
		}
		tune(session, serverSends, serverTakes)
		go func() {
			local, err := net.Dial("tcp", target)
			if err != nil {
				log.Print(err)
				_ = session.Close()
				return
			}
			join(session, local)
		}()
	}
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: kcp client|server LISTEN REMOTE")
	}
	run := map[string]func(string, string) error{"client": client, "server": server}[os.Args[1]]
	if run == nil {
		log.Fatalf("%s is neither client nor server", os.Args[1])
	}
	log.Fatal(run(os.Args[2], os.Args[3]))
}
