// bench.go - the measurements of ../../*.c for goroutines; the same work, the same checks, the same line of output.
//
//	bench NAME [WORKERS] [SCALE] [PARAMETER]      workers is GOMAXPROCS; 0 or nothing leaves it alone
//
// Those that measure how a cost grows are in scale.go, those of bench/work in work.go. All do with Go 1.19.
//
// A goroutine has no handle to join, so each benchmark joins in whichever way measured fastest of those that Go programs use: one
// channel for all results, a channel for each, or a WaitGroup with the results in memory.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type result struct {
	n      uint64
	ns     float64
	extras string
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func scaled(n uint64, scale float64) uint64 {
	if v := uint64(float64(n) * scale); v > 0 {
		return v
	}
	return 1
}

// A value in kB from /proc/self/status, in bytes.
func status(key string) uint64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == key+":" {
			kb, _ := strconv.ParseUint(fields[1], 10, 64)
			return kb * 1024
		}
	}
	return 0
}

func yields(fibers, each uint64) result {
	done := make([]uint64, fibers)
	var all sync.WaitGroup
	start := time.Now()
	all.Add(int(fibers))
	for i := range done {
		go func(to *uint64) {
			count := uint64(0)
			for count < each {
				runtime.Gosched()
				count++
			}
			*to = count
			all.Done()
		}(&done[i])
	}
	all.Wait()
	ns := float64(time.Since(start).Nanoseconds())
	sum := uint64(0)
	for _, count := range done {
		sum += count
	}
	if sum != fibers*each {
		fail("%d yields were counted", sum)
	}
	return result{n: sum, ns: ns}
}

func spawnJoin(n uint64) result {
	sum := uint64(0)
	results := make(chan uint64, 1)
	start := time.Now()
	for i := uint64(0); i < n; i++ {
		go func(i uint64) { results <- i }(i)
		sum += <-results
	}
	ns := float64(time.Since(start).Nanoseconds())
	if sum != n*(n-1)/2 {
		fail("the sum of the results is %d", sum)
	}
	return result{n: n, ns: ns}
}

// A group of goroutines and the first of their errors, as golang.org/x/sync/errgroup has it.
type group struct {
	all  sync.WaitGroup
	once sync.Once
	err  error
}

func (g *group) start(f func() error) {
	g.all.Add(1)
	go func() {
		defer g.all.Done()
		if err := f(); err != nil {
			g.once.Do(func() { g.err = err })
		}
	}()
}

func (g *group) wait() error {
	g.all.Wait()
	return g.err
}

func nursery(n, tiny uint64) result {
	got := make([]uint64, n)
	for i := range got {
		got[i] = 1 // touches the pages
	}
	start := time.Now()
	var g group
	for i := range got {
		i := i
		g.start(func() error {
			got[i] = uint64(i)
			return nil
		})
	}
	if g.wait() != nil {
		fail("a child failed")
	}
	sum := uint64(0)
	for _, v := range got {
		sum += v
	}
	ns := float64(time.Since(start).Nanoseconds())
	if sum != n*(n-1)/2 {
		fail("the sum of the results is %d", sum)
	}
	start = time.Now()
	for i := uint64(0); i < tiny; i++ {
		var one group
		one.start(func() error {
			got[0] = i // waited for before i moves on
			return nil
		})
		if one.wait() != nil || got[0] != i {
			fail("a child has not run")
		}
	}
	each := float64(time.Since(start).Nanoseconds()) / float64(tiny)
	return result{n: n, ns: ns, extras: fmt.Sprintf("tiny_ns=%.1f", each)}
}

func spawnBatch(n uint64) result {
	got := make([]uint64, n)
	for i := range got {
		got[i] = 1 // touches the pages
	}
	var all sync.WaitGroup
	start := time.Now()
	all.Add(int(n))
	for i := range got {
		go func(i int) {
			got[i] = uint64(i)
			all.Done()
		}(i)
	}
	all.Wait()
	sum := uint64(0)
	for _, v := range got {
		sum += v
	}
	ns := float64(time.Since(start).Nanoseconds())
	if sum != n*(n-1)/2 {
		fail("the sum of the results is %d", sum)
	}
	return result{n: n, ns: ns}
}

func spawnTurn(n uint64) result {
	const group = 100
	n = (n + group - 1) / group * group
	var got [group]uint64
	var all sync.WaitGroup
	sum := uint64(0)
	start := time.Now()
	for i := uint64(0); i < n; i += group {
		all.Add(group)
		for k := range got {
			go func(to *uint64, value uint64) {
				*to = value
				all.Done()
			}(&got[k], i+uint64(k))
		}
		runtime.Gosched()
		all.Wait()
		for _, v := range got {
			sum += v
		}
	}
	ns := float64(time.Since(start).Nanoseconds())
	if sum != n*(n-1)/2 {
		fail("the sum of the results is %d", sum)
	}
	return result{n: n, ns: ns}
}

const oneSpawn = 1 << 32

// The number in the lower half, the count of goroutines in the upper.
func fib(n uint64) uint64 {
	if n < 2 {
		return n
	}
	var left uint64
	var one sync.WaitGroup
	one.Add(1)
	go func() {
		left = fib(n - 1)
		one.Done()
	}()
	right := fib(n - 2)
	one.Wait()
	return left + right + oneSpawn
}

func fibonacci(n uint64) uint64 {
	a, b := uint64(0), uint64(1)
	for ; n > 0; n-- {
		a, b = b, a+b
	}
	return a
}

func runFib(scale float64) result {
	n := uint64(27)
	for s := scale; s > 1.27 && n < 40; s /= 1.618 {
		n++
	}
	for s := scale; s < 0.79 && n > 2; s *= 1.618 {
		n--
	}
	start := time.Now()
	both := fib(n)
	ns := float64(time.Since(start).Nanoseconds())
	number, spawns := both%oneSpawn, both/oneSpawn
	if number != fibonacci(n) || spawns != fibonacci(n+1)-1 {
		fail("fib(%d) gave %d with %d goroutines", n, number, spawns)
	}
	return result{n: spawns, ns: ns}
}

const children = 10

func node(first, leaves uint64, sum *uint64, parent *sync.WaitGroup) {
	if leaves == 1 {
		*sum = first
		parent.Done()
		return
	}
	var sums [children]uint64
	var all sync.WaitGroup
	all.Add(children)
	share := leaves / children
	for i := range sums {
		go node(first+uint64(i)*share, share, &sums[i], &all)
	}
	all.Wait()
	total := uint64(0)
	for _, v := range sums {
		total += v
	}
	*sum = total
	parent.Done()
}

func skynet(scale float64) result {
	leaves := uint64(1000000)
	for s := scale; s > 3.2 && leaves < 100000000; s /= 10 {
		leaves *= children
	}
	for s := scale; s < 0.32 && leaves > 1; s *= 10 {
		leaves /= children
	}
	var sum uint64
	var one sync.WaitGroup
	start := time.Now()
	one.Add(1)
	go node(0, leaves, &sum, &one)
	one.Wait()
	ns := float64(time.Since(start).Nanoseconds())
	if sum != leaves*(leaves-1)/2 {
		fail("the sum is %d", sum)
	}
	nodes := uint64(0)
	for level := leaves; level > 0; level /= children {
		nodes += level
	}
	return result{n: nodes, ns: ns}
}

func timers(n uint64) result {
	const second = uint64(time.Second)
	var all sync.WaitGroup
	var early, lateSum, lateMax atomic.Uint64
	start := time.Now()
	all.Add(int(n))
	for i := uint64(0); i < n; i++ {
		ns := second
		if n > 1 {
			ns = i * 7919 % n * second / (n - 1)
		}
		go func(wanted time.Duration) {
			defer all.Done()
			from := time.Now()
			time.Sleep(wanted)
			slept := time.Since(from)
			if slept < wanted {
				early.Add(1)
				return
			}
			late := uint64(slept - wanted)
			lateSum.Add(late)
			for max := lateMax.Load(); late > max && !lateMax.CompareAndSwap(max, late); max = lateMax.Load() {
			}
		}(time.Duration(ns))
	}
	all.Wait()
	ns := float64(time.Since(start).Nanoseconds())
	if early.Load() != 0 {
		fail("%d sleeps ended early", early.Load())
	}
	if ns < float64(second) {
		fail("all sleeps were over after %.0f ns", ns)
	}
	extras := fmt.Sprintf("late_mean_us=%.0f late_max_us=%.0f", float64(lateSum.Load())/float64(n)/1e3, float64(lateMax.Load())/1e3)
	return result{n: n, ns: ns - float64(second), extras: extras}
}

func parked(n uint64) result {
	gate := make(chan struct{})
	var all sync.WaitGroup
	var arrived, passed atomic.Uint64
	var rss, pte uint64
	rssBefore, pteBefore := status("VmRSS"), status("VmPTE")
	start := time.Now()
	all.Add(int(n))
	for i := uint64(0); i < n; i++ {
		go func() {
			if arrived.Add(1) == n {
				rss, pte = status("VmRSS"), status("VmPTE")
				close(gate)
			}
			<-gate
			passed.Add(1)
			all.Done()
		}()
	}
	all.Wait()
	ns := float64(time.Since(start).Nanoseconds())
	if passed.Load() != n {
		fail("%d goroutines passed the gate", passed.Load())
	}
	extras := fmt.Sprintf("rss_bytes=%.0f pte_bytes=%.0f", (float64(rss)-float64(rssBefore))/float64(n), (float64(pte)-float64(pteBefore))/float64(n))
	return result{n: n, ns: ns, extras: extras}
}

func pingpong(n uint64) result {
	there, back := make(chan uint64), make(chan uint64)
	go func() {
		for token := range there {
			back <- token + 1
		}
		close(back)
	}()
	token := uint64(0)
	start := time.Now()
	for i := uint64(0); i < n; i++ {
		there <- token
		token = <-back
	}
	ns := float64(time.Since(start).Nanoseconds())
	close(there)
	<-back // the other has ended
	if token != n {
		fail("the token says %d", token)
	}
	return result{n: n, ns: ns}
}

// Producers and consumers, as many of the one as of the other, on one buffered channel.
func flow(capacity int, n, each uint64) result {
	share := n / each
	if share == 0 {
		share = 1
	}
	n = share * each
	ch := make(chan uint64, capacity)
	type total struct{ received, sum, disorder uint64 }
	totals := make([]total, each)
	var producers, consumers sync.WaitGroup
	start := time.Now()
	consumers.Add(int(each))
	for i := range totals {
		go func(to *total) {
			var s total
			last := uint64(0)
			for v := range ch {
				s.received++
				s.sum += v
				if v < last {
					s.disorder++
				}
				last = v
			}
			*to = s
			consumers.Done()
		}(&totals[i])
	}
	producers.Add(int(each))
	for i := uint64(0); i < each; i++ {
		go func(first uint64) {
			for v := first; v < first+share; v++ {
				ch <- v
			}
			producers.Done()
		}(i * share)
	}
	producers.Wait()
	close(ch)
	consumers.Wait()
	ns := float64(time.Since(start).Nanoseconds())
	received, sum := uint64(0), uint64(0)
	for _, s := range totals {
		received += s.received
		sum += s.sum
		if each == 1 && s.disorder != 0 {
			fail("values came out of order")
		}
	}
	if received != n || sum != n*(n-1)/2 {
		fail("%d values with sum %d", received, sum)
	}
	return result{n: n, ns: ns}
}

// The token counts the hops that are left; the goroutine that receives 0 reports the end.
func ring(n uint64) result {
	const goroutines = 503
	var ch [goroutines]chan uint64
	for i := range ch {
		ch[i] = make(chan uint64)
	}
	var passed [goroutines]uint64
	var all sync.WaitGroup
	end := make(chan int)
	all.Add(goroutines)
	for i := range ch {
		go func(i int, in <-chan uint64, out chan<- uint64) {
			defer all.Done()
			for left := range in {
				passed[i]++
				if left == 0 {
					end <- i
					return
				}
				out <- left - 1
			}
		}(i, ch[i], ch[(i+1)%goroutines])
	}
	start := time.Now()
	ch[0] <- n
	last := <-end
	ns := float64(time.Since(start).Nanoseconds())
	for i := range ch {
		close(ch[i])
	}
	all.Wait()
	sum := uint64(0)
	for _, count := range passed {
		sum += count
	}
	if last != int(n%goroutines) || sum != n+1 {
		fail("%d hops, the last to %d", sum, last)
	}
	return result{n: n, ns: ns}
}

// Two producers on two unbuffered channels, one consumer that selects.
func selecting(n uint64) result {
	a, b := make(chan uint64), make(chan uint64)
	produce := func(ch chan<- uint64, first, end uint64) {
		for v := first; v < end; v++ {
			ch <- v
		}
		close(ch)
	}
	received, sum := uint64(0), uint64(0)
	start := time.Now()
	go produce(a, 0, n/2)
	go produce(b, n/2, n)
	for a != nil || b != nil {
		select {
		case v, ok := <-a:
			if !ok {
				a = nil
				continue
			}
			received++
			sum += v
		case v, ok := <-b:
			if !ok {
				b = nil
				continue
			}
			received++
			sum += v
		}
	}
	ns := float64(time.Since(start).Nanoseconds())
	if received != n || sum != n*(n-1)/2 {
		fail("%d values with sum %d", received, sum)
	}
	return result{n: n, ns: ns}
}

func nthPrime(n uint64) int32 {
	p := int32(1)
	for n > 0 {
		p++
		d := int32(2)
		for d*d <= p && p%d != 0 {
			d++
		}
		if d*d > p {
			n--
		}
	}
	return p
}

func generate(out chan<- int32) {
	for i := int32(2); ; i++ {
		out <- i
	}
}

func filter(in <-chan int32, out chan<- int32, prime int32) {
	for i := range in {
		if i%prime != 0 {
			out <- i
		}
	}
}

// The goroutines are left waiting at the end, which is not measured: a receiver has no way to tell its sender to stop.
func sieve(n uint64) result {
	last := int32(0)
	start := time.Now()
	in := make(chan int32)
	go generate(in)
	for i := uint64(0); i < n; i++ {
		last = <-in
		out := make(chan int32)
		go filter(in, out, last)
		in = out
	}
	ns := float64(time.Since(start).Nanoseconds())
	if last != nthPrime(n) || n == 1500 && last != 12553 {
		fail("the last prime is %d", last)
	}
	return result{n: n, ns: ns}
}

func mutex(n uint64) result {
	const users = 16
	each := (n + users - 1) / users
	var lock sync.Mutex
	var all sync.WaitGroup
	balance := uint64(0)
	start := time.Now()
	all.Add(users)
	for i := 0; i < users; i++ {
		go func() {
			for k := uint64(0); k < each; k++ {
				lock.Lock()
				balance++
				lock.Unlock()
			}
			all.Done()
		}()
	}
	all.Wait()
	ns := float64(time.Since(start).Nanoseconds())
	if balance != users*each {
		fail("%d increments were counted", balance)
	}
	return result{n: balance, ns: ns}
}

func main() {
	if len(os.Args) < 2 || len(os.Args) > 5 {
		fail("usage: %s NAME [WORKERS] [SCALE] [PARAMETER]", os.Args[0])
	}
	name, scale, parameter := os.Args[1], 1.0, uint64(1000)
	if len(os.Args) > 2 {
		workers, err := strconv.Atoi(os.Args[2])
		if err != nil || workers < 0 {
			fail("'%s' is not a number of workers", os.Args[2])
		}
		runtime.GOMAXPROCS(workers)
	}
	if len(os.Args) > 3 {
		var err error
		if scale, err = strconv.ParseFloat(os.Args[3], 64); err != nil || scale < 0 {
			fail("'%s' is not a scale", os.Args[3])
		}
	}
	if len(os.Args) > 4 {
		var err error
		if parameter, err = strconv.ParseUint(os.Args[4], 10, 64); err != nil {
			fail("'%s' is not a parameter", os.Args[4])
		}
	}
	var r result
	if name == "cold_child" {
		coldChild()
		return
	}
	if done := work(name, scale); done != nil {
		r = *done
	} else {
		r = operations(name, scale, parameter)
	}
	line := fmt.Sprintf("go %s %d %d %.1f %s", name, runtime.GOMAXPROCS(0), r.n, r.ns/float64(r.n), r.extras)
	fmt.Println(strings.TrimSpace(line))
}

// The programs of bench/ itself.
func operations(name string, scale float64, parameter uint64) (r result) {
	switch name {
	case "yield":
		r = yields(2, scaled(2500000, scale))
	case "yield1k":
		r = yields(1000, scaled(5000, scale))
	case "spawn_join":
		r = spawnJoin(scaled(1000000, scale))
	case "spawn_batch":
		r = spawnBatch(scaled(1000000, scale))
	case "nursery":
		r = nursery(scaled(1000000, scale), scaled(200000, scale))
	case "spawn_turn":
		r = spawnTurn(scaled(1000000, scale))
	case "fib":
		r = runFib(scale)
	case "skynet":
		r = skynet(scale)
	case "timers":
		r = timers(scaled(100000, scale))
	case "pingpong":
		r = pingpong(scaled(1000000, scale))
	case "spsc":
		r = flow(128, scaled(5000000, scale), 1)
	case "spsc_cap1":
		r = flow(1, scaled(2000000, scale), 1)
	case "mpmc":
		r = flow(128, scaled(4000000, scale), 4)
	case "ring":
		r = ring(scaled(2000000, scale))
	case "select":
		r = selecting(scaled(2000000, scale))
	case "sieve":
		r = sieve(scaled(1500, scale))
	case "mutex":
		r = mutex(scaled(2000000, scale))
	case "parked":
		r = parked(scaled(100000, scale))
	default:
		r = grow(name, scale, parameter)
	}
	return r
}
