// server.go - the same answers by Go's own TLS: server CERT KEY
package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

var zeros [64 * 1024]byte

func serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 4096)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		for {
			header, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if header == "\r\n" {
				break
			}
		}
		words := strings.Fields(line)
		if len(words) < 2 {
			return
		}
		n, err := strconv.Atoi(words[1][1:])
		if err != nil {
			text := "hello over TLS\n"
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
			continue
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", n)
		for n > 0 {
			part := len(zeros)
			if n < part {
				part = n
			}
			if _, err := c.Write(zeros[:part]); err != nil {
				return
			}
			n -= part
		}
	}
}

func main() {
	cert, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil {
		panic(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		panic(err)
	}
	fmt.Printf("listening at %s\n", l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go serve(c)
	}
}
