// echo.go - an echo server with a goroutine for each connection: echo [WORKERS].
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
)

func main() {
	if len(os.Args) > 1 {
		if workers, err := strconv.Atoi(os.Args[1]); err == nil && workers > 0 {
			runtime.GOMAXPROCS(workers)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
	for {
		connection, err := listener.Accept()
		if err != nil {
			os.Exit(1)
		}
		go func() {
			defer connection.Close()
			bytes := make([]byte, 2048)
			for {
				n, err := connection.Read(bytes)
				if err != nil {
					return
				}
				if _, err = connection.Write(bytes[:n]); err != nil {
					return
				}
			}
		}()
	}
}
