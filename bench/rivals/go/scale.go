// scale.go - how costs grow with a parameter: the measurements of ../../scale_*.c, ../../latency.c, ../../tail.c and ../../idle.c for goroutines.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A missing feature of a rival is not a failure.
func unavailable(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(77)
}

func atLeast(n, least uint64) uint64 {
	if n < least {
		return least
	}
	return n
}

// CPU time of the process, in user space and in the kernel, and how often its threads were switched to.
func usage() (ns float64, switches int64) {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano() + u.Stime.Nano()), u.Nvcsw + u.Nivcsw
}

func percentiles(prefix string, samples []int64) string {
	sort.Slice(samples, func(i, k int) bool { return samples[i] < samples[k] })
	text := ""
	for _, p := range []struct {
		name string
		part float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}, {"max", 1}} {
		at := int(p.part*float64(len(samples)-1) + 0.5)
		text += fmt.Sprintf(" %s%s_us=%.2f", prefix, p.name, float64(samples[at])/1e3)
	}
	return text
}

// A gate that opens when n have arrived, and a clock that starts when all n have had their first turn after it.
type gate struct {
	n                        uint64
	arrived, begun, finished atomic.Uint64
	open                     chan struct{}
	start, end               time.Time
	all                      sync.WaitGroup
}

func newGate(n uint64) *gate {
	g := &gate{n: n, open: make(chan struct{})}
	g.all.Add(int(n))
	return g
}

func (g *gate) pass() {
	if g.arrived.Add(1) == g.n {
		close(g.open)
	}
	<-g.open
	if g.begun.Add(1) == g.n {
		g.start = time.Now()
	}
	for g.begun.Load() < g.n {
		runtime.Gosched()
	}
}

func (g *gate) finish() {
	if g.finished.Add(1) == g.n {
		g.end = time.Now()
	}
	g.all.Done()
}

func (g *gate) ns() float64 {
	g.all.Wait()
	return float64(g.end.Sub(g.start).Nanoseconds())
}

func scaleYield(fibers, n uint64) result {
	each := atLeast(n/fibers, 8)
	g := newGate(fibers)
	for i := uint64(0); i < fibers; i++ {
		go func() {
			g.pass()
			for k := uint64(0); k < each; k++ {
				runtime.Gosched()
			}
			g.finish()
		}()
	}
	return result{n: fibers * each, ns: g.ns()}
}

func scalePairs(fibers, n uint64) result {
	pairs := atLeast(fibers/2, 1)
	rounds := atLeast(n/pairs, 4)
	g := newGate(pairs)
	var sum atomic.Uint64
	for i := uint64(0); i < pairs; i++ {
		there, back := make(chan uint64), make(chan uint64)
		go func() {
			for k := uint64(0); k < rounds; k++ {
				back <- 1 + <-there
			}
		}()
		go func() {
			g.pass()
			token := uint64(0)
			for k := uint64(0); k < rounds; k++ {
				there <- token
				token = <-back
			}
			sum.Add(token)
			g.finish()
		}()
	}
	ns := g.ns()
	if sum.Load() != pairs*rounds {
		fail("%d messages were answered", sum.Load())
	}
	return result{n: 2 * pairs * rounds, ns: ns}
}

func memory() float64 {
	return float64(status("VmRSS") + status("VmPTE"))
}

func scaleParked(n uint64) result {
	door := make(chan struct{})
	var all sync.WaitGroup
	var arrived, passed atomic.Uint64
	var during float64
	before := memory()
	start := time.Now()
	all.Add(int(n))
	for i := uint64(0); i < n; i++ {
		go func() {
			if arrived.Add(1) == n {
				during = memory()
				close(door)
			}
			<-door
			passed.Add(1)
			all.Done()
		}()
	}
	all.Wait()
	ns := float64(time.Since(start).Nanoseconds())
	if passed.Load() != n {
		fail("%d goroutines passed the gate", passed.Load())
	}
	time.Sleep(200 * time.Millisecond)
	each := func(bytes float64) float64 {
		if bytes < before {
			return 0
		}
		return (bytes - before) / float64(n)
	}
	return result{n: n, ns: ns, extras: fmt.Sprintf("bytes=%.0f after_bytes=%.0f", each(during), each(memory()))}
}

func scaleTimers(sleepers uint64) result {
	pieces := uint64(20)
	if sleepers > 100000 {
		pieces = 1
	} else if sleepers > 1000 {
		pieces = 4
	}
	late := make([]int64, sleepers*pieces)
	for i := range late {
		late[i] = 1 // touches the pages
	}
	var all sync.WaitGroup
	all.Add(int(sleepers))
	start, _ := usage()
	for i := uint64(0); i < sleepers; i++ {
		go func(place uint64) {
			seed := place*0x9e3779b97f4a7c15 + 1
			mean := uint64(time.Second) / pieces
			for k := uint64(0); k < pieces; k++ {
				seed = seed*6364136223846793005 + 1442695040888963407
				wanted := time.Duration(mean/2 + (seed>>33)%mean)
				from := time.Now()
				time.Sleep(wanted)
				slept := time.Since(from)
				if slept < wanted {
					fail("a sleep ended early")
				}
				late[place*pieces+k] = int64(slept - wanted)
			}
			all.Done()
		}(i)
	}
	all.Wait()
	end, _ := usage()
	return result{n: sleepers * pieces, ns: end - start, extras: percentiles("late_", late)[1:]}
}

// A value of a size that the type fixes; the number is in its first and its last 8 bytes.
type value interface {
	[1]uint64 | [8]uint64 | [32]uint64 | [128]uint64 | [512]uint64 | [2048]uint64
}

func sized[T value](n uint64, put func(*T, uint64), get func(*T) (uint64, uint64)) result {
	ch := make(chan T, 16)
	start := time.Now()
	go func() {
		var v T
		for i := uint64(0); i < n; i++ {
			put(&v, i)
			ch <- v
		}
		close(ch)
	}()
	received := uint64(0)
	for v := range ch {
		if first, last := get(&v); first != received || last != received {
			fail("value %d is damaged", received)
		}
		received++
	}
	ns := float64(time.Since(start).Nanoseconds())
	if received != n {
		fail("%d values were received", received)
	}
	return result{n: n, ns: ns}
}

func scaleSize(bytes uint64, scale float64) result {
	n := uint64(1000000)
	if bytes > 256 {
		n = 268435456 / bytes
	}
	n = scaled(n, scale)
	switch bytes {
	case 8:
		return sized(n, func(v *[1]uint64, i uint64) { v[0] = i }, func(v *[1]uint64) (uint64, uint64) { return v[0], v[0] })
	case 64:
		return sized(n, func(v *[8]uint64, i uint64) { v[0], v[7] = i, i }, func(v *[8]uint64) (uint64, uint64) { return v[0], v[7] })
	case 256:
		return sized(n, func(v *[32]uint64, i uint64) { v[0], v[31] = i, i }, func(v *[32]uint64) (uint64, uint64) { return v[0], v[31] })
	case 1024:
		return sized(n, func(v *[128]uint64, i uint64) { v[0], v[127] = i, i }, func(v *[128]uint64) (uint64, uint64) { return v[0], v[127] })
	case 4096:
		return sized(n, func(v *[512]uint64, i uint64) { v[0], v[511] = i, i }, func(v *[512]uint64) (uint64, uint64) { return v[0], v[511] })
	case 16384:
		return sized(n, func(v *[2048]uint64, i uint64) { v[0], v[2047] = i, i }, func(v *[2048]uint64) (uint64, uint64) { return v[0], v[2047] })
	}
	unavailable("an element of a Go channel has less than 64 KiB")
	panic("not reached")
}

// The arms of a select are part of the program's text: one loop for each number of them.
func scaleArms(arms, n uint64) result {
	each := (n + arms - 1) / arms
	n = each * arms
	c := make([]chan uint64, 16)
	if arms > 16 {
		unavailable("more than 16 arms were not written out")
	}
	start := time.Now()
	for i := uint64(0); i < arms; i++ {
		c[i] = make(chan uint64)
		go func(ch chan<- uint64, first uint64) {
			for v := first; v < first+each; v++ {
				ch <- v
			}
		}(c[i], i*each)
	}
	sum, v := uint64(0), uint64(0)
	for i := uint64(0); i < n; i++ {
		switch arms {
		case 1:
			v = <-c[0]
		case 2:
			select {
			case v = <-c[0]:
			case v = <-c[1]:
			}
		case 4:
			select {
			case v = <-c[0]:
			case v = <-c[1]:
			case v = <-c[2]:
			case v = <-c[3]:
			}
		case 8:
			select {
			case v = <-c[0]:
			case v = <-c[1]:
			case v = <-c[2]:
			case v = <-c[3]:
			case v = <-c[4]:
			case v = <-c[5]:
			case v = <-c[6]:
			case v = <-c[7]:
			}
		case 16:
			select {
			case v = <-c[0]:
			case v = <-c[1]:
			case v = <-c[2]:
			case v = <-c[3]:
			case v = <-c[4]:
			case v = <-c[5]:
			case v = <-c[6]:
			case v = <-c[7]:
			case v = <-c[8]:
			case v = <-c[9]:
			case v = <-c[10]:
			case v = <-c[11]:
			case v = <-c[12]:
			case v = <-c[13]:
			case v = <-c[14]:
			case v = <-c[15]:
			}
		default:
			unavailable("so many arms were not written out")
		}
		sum += v
	}
	ns := float64(time.Since(start).Nanoseconds())
	if sum != n*(n-1)/2 {
		fail("the sum of the values is %d", sum)
	}
	return result{n: n, ns: ns}
}

func latency(busy, calls uint64) result {
	const callers = 8
	var over atomic.Bool
	var turns atomic.Uint64
	var workers, lines sync.WaitGroup
	wake, late := make([]int64, callers*calls), make([]int64, callers*calls)
	workers.Add(int(busy))
	for i := uint64(0); i < busy; i++ {
		go func() {
			x, mine := uint64(1), uint64(0)
			for ; !over.Load(); mine++ {
				for k := 0; k < 1500; k++ {
					x = x*6364136223846793005 + 1
				}
				runtime.Gosched()
			}
			if x == 0 {
				mine++
			}
			turns.Add(mine)
			workers.Done()
		}()
	}
	lines.Add(2 * callers)
	for i := uint64(0); i < callers; i++ {
		ch := make(chan time.Time, 1)
		go func(place uint64) {
			wanted := time.Duration(500000 + place*10000)
			for k := uint64(0); k < calls; k++ {
				from := time.Now()
				time.Sleep(wanted)
				now := time.Now()
				late[place*calls+k] = int64(now.Sub(from) - wanted)
				ch <- now
			}
			lines.Done()
		}(i)
		go func(place uint64) {
			for k := uint64(0); k < calls; k++ {
				wake[place*calls+k] = int64(time.Since(<-ch))
			}
			lines.Done()
		}(i)
	}
	lines.Wait()
	over.Store(true)
	workers.Wait()
	if busy > 0 && turns.Load() == 0 {
		fail("the busy goroutines never ran")
	}
	sum := int64(0)
	for _, ns := range wake {
		sum += ns
	}
	return result{n: callers * calls, ns: float64(sum), extras: percentiles("", wake)[1:] + percentiles("late_", late)}
}

func tail(oneIn, slow uint64) result {
	const long = 3 * time.Millisecond
	calls := oneIn * slow
	all, slowest := make([]int64, 0, calls), make([]int64, 0, slow)
	there, back := make(chan time.Time, 1), make(chan time.Time, 1)
	done := make(chan struct{})
	go func() {
		for i := uint64(1); i <= calls; i++ {
			sent := <-there
			ns := int64(time.Since(sent))
			all = append(all, ns)
			if i%oneIn == 0 {
				slowest = append(slowest, ns)
			}
			back <- sent
		}
		close(done)
	}()
	for i := uint64(1); i <= calls; i++ {
		sent := time.Now()
		there <- sent
		if i%oneIn == 0 {
			for time.Since(sent) < long {
			}
		}
		if answer := <-back; answer != sent {
			fail("an answer to another send")
		}
	}
	<-done
	sum := int64(0)
	for _, ns := range all {
		sum += ns
	}
	return result{n: calls, ns: float64(sum), extras: percentiles("", all)[1:] + percentiles("long_", slowest)}
}

func idle(n uint64) result {
	const seconds = 2
	door := make(chan struct{})
	var all sync.WaitGroup
	var arrived atomic.Uint64
	all.Add(int(n))
	for i := uint64(0); i < n; i++ {
		go func() {
			arrived.Add(1)
			<-door
			all.Done()
		}()
	}
	for arrived.Load() < n {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond)
	before, switchesBefore := usage()
	time.Sleep(seconds * time.Second)
	after, switches := usage()
	close(door)
	all.Wait()
	extras := fmt.Sprintf("switches_per_s=%.1f", float64(switches-switchesBefore)/seconds)
	return result{n: seconds, ns: after - before, extras: extras}
}

func grow(name string, scale float64, parameter uint64) result {
	switch name {
	case "scale_yield":
		return scaleYield(parameter, scaled(4000000, scale))
	case "scale_pairs":
		return scalePairs(parameter, scaled(500000, scale))
	case "scale_parked":
		return scaleParked(parameter)
	case "scale_timers":
		return scaleTimers(parameter)
	case "scale_capacity":
		return flow(int(parameter), scaled(2000000, scale), 1)
	case "scale_size":
		return scaleSize(parameter, scale)
	case "scale_arms":
		return scaleArms(parameter, scaled(1000000, scale))
	case "latency":
		return latency(parameter, scaled(2000, scale))
	case "tail":
		return tail(parameter, scaled(400, scale))
	case "idle":
		return idle(parameter)
	}
	fail("there is no benchmark '%s'", name)
	panic("not reached")
}
