// Command webtransport-go plays the echo of crates/webtransport/examples/echo.rs, as server or client, over the
// library of quic-go: interop/webtransport.sh runs it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
)

const (
	path     = "/echo"
	protocol = "echo-1"
	greeting = "from the server"
	limit    = 4 << 20
)

func main() {
	log.SetFlags(0)
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serve()
	case len(os.Args) == 4 && os.Args[1] == "try":
		err = tryAll(context.Background(), os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("usage: webtransport-go serve | try URL FINGERPRINT")
	}
	if err != nil {
		log.Fatal(err)
	}
}
