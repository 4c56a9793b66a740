// The same operations as bench/io/file.c, by Go: go run file.go [DIRECTORY]
package main

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	block      = 4096
	blocks     = 256
	operations = 20000
	rounds     = 15
	syncs      = 320
	coldBlocks = 16384
	coldReads  = 4096
	diskRounds = 5
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func best(name string, operation func(i int)) {
	least := time.Hour
	for r := 0; r < rounds; r++ {
		start := time.Now()
		for i := 0; i < operations; i++ {
			operation(i)
		}
		if took := time.Since(start); took < least {
			least = took
		}
	}
	fmt.Printf("%-12s go_ns=%.0f\n", name, float64(least.Nanoseconds())/operations)
}

func main() {
	directory := "."
	if len(os.Args) > 1 {
		directory = os.Args[1]
	}
	file, err := os.CreateTemp(directory, "go-file-*")
	must(err)
	defer os.Remove(file.Name())
	bytes := make([]byte, block)
	for i := 0; i < blocks; i++ {
		_, err := file.WriteAt(bytes, int64(i*block))
		must(err)
	}
	best("read", func(i int) { _, err := file.ReadAt(bytes, int64(i%blocks*block)); must(err) })
	best("write", func(i int) { _, err := file.WriteAt(bytes, int64(i%blocks*block)); must(err) })
	best("open_close", func(i int) { f, err := os.Open(file.Name()); must(err); f.Close() })
	best("stat", func(i int) { _, err := os.Stat(file.Name()); must(err) })
	bytes = make([]byte, coldBlocks*block)
	_, err = file.WriteAt(bytes, 0)
	must(err)
	must(fadvise(file, 1)) // random: no reading ahead
	for _, readers := range []int{1, 32} {
		disk("cold", readers, coldReads, file, true, func(i int, buffer []byte) {
			_, err := file.ReadAt(buffer, int64(uint32(i)*7919%coldBlocks)*block)
			must(err)
		})
	}
	for _, writers := range []int{1, 16} {
		disk("sync", writers, syncs, file, false, func(i int, buffer []byte) {
			_, err := file.WriteAt(buffer, int64(i%writers*block))
			must(err)
			must(syscall.Fdatasync(int(file.Fd())))
		})
	}
}

func fadvise(file *os.File, advice int) error {
	if _, _, e := syscall.Syscall6(syscall.SYS_FADVISE64, file.Fd(), 0, 0, uintptr(advice), 0, 0); e != 0 {
		return e
	}
	return nil
}

func cpu() time.Duration {
	var used syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Operations that wait for the disk, by several goroutines: the least wall time and the least CPU time of a round.
func disk(name string, members, count int, file *os.File, cold bool, operation func(i int, buffer []byte)) {
	least, leastCPU := time.Hour, time.Hour
	for r := 0; r < diskRounds; r++ {
		if cold {
			must(syscall.Fdatasync(int(file.Fd())))
			must(fadvise(file, 4)) // not needed: out of the page cache
		}
		var group sync.WaitGroup
		before, start := cpu(), time.Now()
		for m := 0; m < members; m++ {
			group.Add(1)
			go func(m int) {
				defer group.Done()
				buffer := make([]byte, block)
				for i := m; i < count; i += members {
					operation(i, buffer)
				}
			}(m)
		}
		group.Wait()
		least, leastCPU = min(least, time.Since(start)), min(leastCPU, cpu()-before)
	}
	fmt.Printf("%-12s go_ns=%.0f go_cpu_ns=%.0f\n", fmt.Sprintf("%s_%d", name, members),
		float64(least.Nanoseconds())/float64(count), float64(leastCPU.Nanoseconds())/float64(count))
}
