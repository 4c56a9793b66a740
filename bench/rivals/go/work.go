// work.go - the programs of ../../work for goroutines: the same work, the same checks, as Go programs usually write it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const stepsPerUs = 750

//go:noinline
func compute(x, steps uint64) uint64 {
	for i := uint64(0); i < steps; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

func random(seed *uint64) uint64 {
	*seed = *seed*6364136223846793005 + 1442695040888963407
	return *seed >> 33
}

// Adds the CPU time of the whole process in the measured region, for one operation.
func measured(n uint64, extras func() string, region func()) result {
	cpu, _ := usage()
	start := time.Now()
	region()
	ns := float64(time.Since(start).Nanoseconds())
	after, _ := usage()
	text := fmt.Sprintf(" cpu_ns=%.1f", (after-cpu)/float64(n))
	if extras != nil {
		text += extras()
	}
	return result{n: n, ns: ns, extras: text}
}

var sink atomic.Uint64

func workActors(scale float64) result {
	const actors, tokens = 1000, 64
	type message struct{ left, seed uint64 }
	hops := scaled(2000000, scale)/tokens + 1
	var inbox [actors]chan message
	for i := range inbox {
		inbox[i] = make(chan message, tokens)
	}
	done := make(chan uint64, tokens)
	var handled atomic.Uint64
	r := measured(hops*tokens, nil, func() {
		var all sync.WaitGroup
		all.Add(actors)
		for i := range inbox {
			go func(in chan message) {
				defer all.Done()
				count := uint64(0)
				for m := range in {
					count++
					m.left--
					if m.left == 0 {
						done <- m.seed
						continue
					}
					to := inbox[random(&m.seed)%actors]
					to <- m
				}
				handled.Add(count)
			}(inbox[i])
		}
		for i := uint64(0); i < tokens; i++ {
			inbox[i*15%actors] <- message{hops, i}
		}
		for i := 0; i < tokens; i++ {
			<-done
		}
		for i := range inbox {
			close(inbox[i])
		}
		all.Wait()
	})
	if handled.Load() != hops*tokens {
		fail("%d messages were handled", handled.Load())
	}
	return r
}

func workRequest(scale float64) result {
	const clients, servers = 64, 8
	type request struct {
		question uint64
		answer   chan uint64
	}
	each := scaled(1000000, scale)/clients + 1
	requests := make(chan request, 16)
	return measured(each*clients, nil, func() {
		var served, asked sync.WaitGroup
		served.Add(servers)
		for i := 0; i < servers; i++ {
			go func() {
				defer served.Done()
				for r := range requests {
					r.answer <- r.question*2 + 1
				}
			}()
		}
		asked.Add(clients)
		for i := uint64(0); i < clients; i++ {
			go func(place uint64) {
				defer asked.Done()
				answers := make(chan uint64, 1)
				for k := uint64(0); k < each; k++ {
					question := place*each + k
					requests <- request{question, answers}
					if <-answers != question*2+1 {
						fail("the answer to another question")
					}
				}
			}(i)
		}
		asked.Wait()
		close(requests)
		served.Wait()
	})
}

func workFanout(count, us uint64) result {
	const hands, capacity = 16, 128
	type job struct{ number, result uint64 }
	jobs, results := make(chan job, capacity), make(chan job, capacity)
	sum := uint64(0)
	r := measured(count, nil, func() {
		var all sync.WaitGroup
		all.Add(hands)
		for i := 0; i < hands; i++ {
			go func() {
				defer all.Done()
				for j := range jobs {
					j.result = compute(j.number, us*stepsPerUs)
					results <- j
				}
			}()
		}
		go func() {
			for i := uint64(0); i < count; i++ {
				jobs <- job{number: i}
			}
			close(jobs)
		}()
		for i := uint64(0); i < count; i++ {
			j := <-results
			sum += j.number
		}
		all.Wait()
	})
	if sum != count*(count-1)/2 {
		fail("the sum of the jobs is %d", sum)
	}
	return r
}

func workService(rate uint64, scale float64) result {
	const backends, workUs = 4, 10
	type query struct {
		question uint64
		answer   chan uint64
	}
	count := scaled(rate, scale)
	queries := make(chan query, 64)
	done := make([]int64, count)
	var sum atomic.Uint64
	r := measured(count, func() string { return percentiles("", done) }, func() {
		var served, all sync.WaitGroup
		served.Add(backends)
		for i := 0; i < backends; i++ {
			go func() {
				defer served.Done()
				for q := range queries {
					q.answer <- q.question + 1
				}
			}()
		}
		all.Add(int(count))
		begin := time.Now()
		for i := uint64(0); i < count; i++ {
			due := begin.Add(time.Duration(i * 1000000000 / rate))
			time.Sleep(time.Until(due))
			go func(number uint64, due time.Time) {
				defer all.Done()
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				answers := make(chan uint64, 1)
				var answer uint64
				select {
				case queries <- query{number, answers}:
				case <-ctx.Done():
					fail("a request was late")
				}
				select {
				case answer = <-answers:
				case <-ctx.Done():
					fail("a request was late")
				}
				if answer != number+1 {
					fail("the answer to another question")
				}
				sink.Store(compute(answer, workUs*stepsPerUs))
				sum.Add(answer)
				done[number] = time.Since(due).Nanoseconds()
			}(i, due)
		}
		all.Wait()
		close(queries)
		served.Wait()
	})
	if sum.Load() != count*(count+1)/2 {
		fail("the sum is %d", sum.Load())
	}
	return r
}

func workBroadcastChan(scale float64) result {
	const subscribers = 1000
	rounds := scaled(500, scale)
	var inbox [subscribers]chan uint64
	for i := range inbox {
		inbox[i] = make(chan uint64, 1)
	}
	var total atomic.Uint64
	r := measured(rounds*subscribers, nil, func() {
		var pending, all sync.WaitGroup
		all.Add(subscribers)
		for i := range inbox {
			go func(in chan uint64) {
				defer all.Done()
				sum := uint64(0)
				for value := range in {
					sum += value
					pending.Done()
				}
				total.Add(sum)
			}(inbox[i])
		}
		for round := uint64(1); round <= rounds; round++ {
			pending.Add(subscribers)
			for i := range inbox {
				inbox[i] <- round
			}
			pending.Wait()
		}
		for i := range inbox {
			close(inbox[i])
		}
		all.Wait()
	})
	if total.Load() != rounds*(rounds+1)/2*subscribers {
		fail("a delivery is missing")
	}
	return r
}

func workBroadcastCond(scale float64) result {
	const waiters = 1000
	rounds := scaled(200, scale)
	var lock sync.Mutex
	changed, seenByAll := sync.NewCond(&lock), sync.NewCond(&lock)
	var generation, seen uint64
	var total atomic.Uint64
	r := measured(rounds*waiters, nil, func() {
		var all sync.WaitGroup
		all.Add(waiters)
		for i := 0; i < waiters; i++ {
			go func() {
				defer all.Done()
				sum := uint64(0)
				for last := uint64(0); last < rounds; {
					lock.Lock()
					for generation == last {
						changed.Wait()
					}
					last = generation
					if seen++; seen == waiters {
						seenByAll.Signal()
					}
					lock.Unlock()
					sum += last
				}
				total.Add(sum)
			}()
		}
		for round := uint64(1); round <= rounds; round++ {
			lock.Lock()
			generation, seen = round, 0
			changed.Broadcast()
			for seen < waiters {
				seenByAll.Wait()
			}
			lock.Unlock()
		}
		all.Wait()
	})
	if total.Load() != rounds*(rounds+1)/2*waiters {
		fail("a wake is missing")
	}
	return r
}

func workRWLock(scale float64) result {
	const fibers, entries, writeOneIn = 64, 256, 20
	each := scaled(200000, scale)/fibers + 1
	var lock sync.RWMutex
	var table [entries]uint64
	var writes uint64
	var written atomic.Uint64
	waits := make([]int64, each*fibers)
	r := measured(each*fibers, func() string { return percentiles("", waits) }, func() {
		var all sync.WaitGroup
		all.Add(fibers)
		for p := uint64(0); p < fibers; p++ {
			go func(place uint64) {
				defer all.Done()
				seed := place + 1
				for i := uint64(0); i < each; i++ {
					from := random(&seed) % entries
					write := random(&seed)%writeOneIn == 0
					before := time.Now()
					var wait time.Duration
					if write {
						lock.Lock()
						wait = time.Since(before)
						writes++
						table[from] += compute(from, stepsPerUs/5) & 1
						lock.Unlock()
						written.Add(1)
					} else {
						lock.RLock()
						wait = time.Since(before)
						compute(table[from], stepsPerUs/5)
						lock.RUnlock()
					}
					waits[place*each+i] = wait.Nanoseconds()
					compute(seed, stepsPerUs)
					if i%16 == 0 {
						runtime.Gosched()
					}
				}
			}(p)
		}
		all.Wait()
	})
	if writes != written.Load() {
		fail("%d writes were counted", writes)
	}
	return r
}

//go:noinline
func descend(depth int, arrived *sync.WaitGroup, door chan struct{}) uint64 {
	var frame [512]byte
	frame[depth] = 1
	if depth == 0 {
		arrived.Done()
		<-door
		return 1
	}
	return descend(depth-1, arrived, door) + uint64(frame[depth])
}

func workWaves(scale float64) result {
	const fibers, depth = 1000, 24
	waves := scaled(50, scale)
	var sum atomic.Uint64
	r := measured(waves*fibers, nil, func() {
		for wave := uint64(0); wave < waves; wave++ {
			door := make(chan struct{})
			var arrived, all sync.WaitGroup
			arrived.Add(fibers)
			all.Add(fibers)
			for i := 0; i < fibers; i++ {
				go func() {
					defer all.Done()
					sum.Add(descend(depth, &arrived, door))
				}()
			}
			arrived.Wait()
			close(door)
			all.Wait()
		}
	})
	if sum.Load() != waves*fibers*(depth+1) {
		fail("the sum is %d", sum.Load())
	}
	return r
}

func workNest(scale float64) result {
	const levels, children, tree = 4, 3, 3 + 9 + 27 + 81
	rounds := scaled(4000, scale)
	var count atomic.Uint64
	var grow func(level int) error
	grow = func(level int) error {
		count.Add(1)
		if level == 0 {
			return nil
		}
		var g group
		for i := 0; i < children; i++ {
			g.start(func() error { return grow(level - 1) })
		}
		return g.wait()
	}
	r := measured(rounds*tree, nil, func() {
		for i := uint64(0); i < rounds; i++ {
			var g group
			for k := 0; k < children; k++ {
				g.start(func() error { return grow(levels - 1) })
			}
			if g.wait() != nil {
				fail("a child failed")
			}
		}
	})
	if count.Load() != rounds*tree {
		fail("%d children ran", count.Load())
	}
	return r
}

// A timer for each goroutine that is reset for each wait: what careful Go programs do.
func workTimeouts(scale float64) result {
	const pairs = 64
	each := scaled(1000000, scale)/(4*pairs) + 1
	var total atomic.Uint64
	recv := func(timer *time.Timer, from chan uint64) uint64 {
		timer.Reset(10 * time.Second)
		select {
		case value := <-from:
			return value
		case <-timer.C:
			fail("a wait was too long")
			return 0
		}
	}
	send := func(timer *time.Timer, to chan uint64, value uint64) {
		timer.Reset(10 * time.Second)
		select {
		case to <- value:
		case <-timer.C:
			fail("a wait was too long")
		}
	}
	return measured(4*each*pairs, nil, func() {
		var all sync.WaitGroup
		all.Add(2 * pairs)
		for i := 0; i < pairs; i++ {
			there, back := make(chan uint64, 1), make(chan uint64, 1)
			go func() {
				defer all.Done()
				timer := time.NewTimer(time.Hour)
				for k := uint64(0); k < each; k++ {
					send(timer, back, recv(timer, there)+1)
				}
				timer.Stop()
			}()
			go func() {
				defer all.Done()
				timer := time.NewTimer(time.Hour)
				value := uint64(0)
				for k := uint64(0); k < each; k++ {
					send(timer, there, value)
					value = recv(timer, back)
				}
				timer.Stop()
				total.Add(value)
			}()
		}
		all.Wait()
		if total.Load() != each*pairs {
			fail("the sum is %d", total.Load())
		}
	})
}

func coldChild() {
	done := make(chan int)
	go func() { done <- 1 }()
	if <-done != 1 {
		os.Exit(1)
	}
}

func workCold(scale float64) result {
	n := scaled(200, scale)
	self, err := os.Executable()
	if err != nil {
		fail("%v", err)
	}
	children := func() float64 {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u)
		return float64(u.Utime.Nano() + u.Stime.Nano())
	}
	before := children()
	r := measured(n, nil, func() {
		for i := uint64(0); i < n; i++ {
			if err := exec.Command(self, "cold_child", fmt.Sprint(runtime.GOMAXPROCS(0))).Run(); err != nil {
				fail("a process failed: %v", err)
			}
		}
	})
	r.extras = fmt.Sprintf(" cpu_ns=%.1f", (children()-before)/float64(n))
	return r
}

func workChameneos(scale float64) result {
	const creatures = 10
	meetings := scaled(300000, scale)
	complement := func(a, b int) int {
		if a == b {
			return a
		}
		return 3 - a - b
	}
	var lock sync.Mutex
	second := sync.NewCond(&lock)
	left, first := meetings, -1
	var partner, colours [creatures]int
	var met atomic.Uint64
	meet := func(me int, mine *int) bool {
		lock.Lock()
		defer lock.Unlock()
		if left == 0 {
			return false
		}
		colours[me] = *mine
		if first < 0 {
			first, partner[me] = me, -1
			for partner[me] < 0 {
				second.Wait()
			}
			*mine = complement(*mine, colours[partner[me]])
			return true
		}
		other := first
		first = -1
		left--
		partner[other] = me
		*mine = complement(*mine, colours[other])
		second.Broadcast()
		return true
	}
	r := measured(meetings, nil, func() {
		var all sync.WaitGroup
		all.Add(creatures)
		for i := 0; i < creatures; i++ {
			go func(me int) {
				defer all.Done()
				mine, count := me%3, uint64(0)
				for meet(me, &mine) {
					count++
				}
				met.Add(count)
			}(i)
		}
		all.Wait()
	})
	if met.Load() != 2*meetings {
		fail("%d creatures met", met.Load())
	}
	return r
}

func treeHash(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func treeChildren(node uint64, depth int) int {
	if depth == 0 {
		return 500
	}
	if depth < 200 && treeHash(node)%1000 < 122 {
		return 8
	}
	return 0
}

func treeAlone(node uint64, depth int) uint64 {
	sum := uint64(1)
	for i, n := 0, treeChildren(node, depth); i < n; i++ {
		sum += treeAlone(treeHash(node*8191+uint64(i)+1), depth+1)
	}
	return sum
}

func treeCount(node uint64, depth int) uint64 {
	n := treeChildren(node, depth)
	if depth > 6 || n == 0 {
		sum := uint64(1)
		for i := 0; i < n; i++ {
			sum += treeCount(treeHash(node*8191+uint64(i)+1), depth+1)
		}
		return sum
	}
	counts := make([]uint64, n)
	var all sync.WaitGroup
	all.Add(n)
	for i := range counts {
		go func(i int) {
			counts[i] = treeCount(treeHash(node*8191+uint64(i)+1), depth+1)
			all.Done()
		}(i)
	}
	all.Wait()
	sum := uint64(1)
	for _, count := range counts {
		sum += count
	}
	return sum
}

func workTree(scale float64) result {
	rounds := scaled(40, scale)
	expected, nodes := uint64(0), uint64(0)
	for i := uint64(0); i < rounds; i++ {
		expected += treeAlone(i+1, 0)
	}
	r := measured(expected, nil, func() {
		for i := uint64(0); i < rounds; i++ {
			nodes += treeCount(i+1, 0)
		}
	})
	if nodes != expected {
		fail("%d nodes were counted", nodes)
	}
	return r
}

func mergeSort(from, spare []uint64) {
	if len(from) <= 4096 {
		slices.Sort(from)
		return
	}
	half := len(from) / 2
	var right sync.WaitGroup
	right.Add(1)
	go func() {
		mergeSort(from[half:], spare[half:])
		right.Done()
	}()
	mergeSort(from[:half], spare[:half])
	right.Wait()
	copy(spare[:half], from[:half])
	i, k, out := 0, half, 0
	for ; i < half && k < len(from); out++ {
		if from[k] < spare[i] {
			from[out] = from[k]
			k++
		} else {
			from[out] = spare[i]
			i++
		}
	}
	copy(from[out:], spare[i:half])
}

func workSort(scale float64) result {
	n := scaled(2000000, scale)
	all, spare := make([]uint64, n), make([]uint64, n)
	seed, sum, sorted := uint64(1), uint64(0), uint64(0)
	for i := range all {
		all[i] = random(&seed)
		spare[i] = 1
		sum += all[i]
	}
	r := measured(n, nil, func() { mergeSort(all, spare) })
	for i := range all {
		if i > 0 && all[i-1] > all[i] {
			fail("element %d is out of order", i)
		}
		sorted += all[i]
	}
	if sum != sorted {
		fail("elements were lost")
	}
	return r
}

func workPipeline(amount, pipelines uint64, capacity int, steps []uint64) result {
	type item struct{ number, value uint64 }
	each := amount/pipelines + 1
	var items atomic.Uint64
	r := measured(each*pipelines, nil, func() {
		var all sync.WaitGroup
		all.Add(int(pipelines))
		for p := uint64(0); p < pipelines; p++ {
			in := make(chan item, capacity)
			go func(out chan item) {
				for i := uint64(0); i < each; i++ {
					out <- item{i, i}
				}
				close(out)
			}(in)
			for _, n := range steps {
				out := make(chan item, capacity)
				go func(in, out chan item, n uint64) {
					for one := range in {
						one.value = compute(one.value, n)
						out <- one
					}
					close(out)
				}(in, out, n)
				in = out
			}
			go func(in chan item) {
				next := uint64(0)
				for one := range in {
					if one.number != next {
						fail("item %d is out of order", one.number)
					}
					next++
				}
				items.Add(next)
				all.Done()
			}(in)
		}
		all.Wait()
	})
	if items.Load() != each*pipelines {
		fail("%d items came through", items.Load())
	}
	return r
}

func workSessions(scale float64) result {
	count := scaled(100000, scale)
	inbox := make([]chan uint64, count)
	for i := range inbox {
		inbox[i] = make(chan uint64, 1)
	}
	var received, cancelled atomic.Uint64
	bytes := 0.0
	r := measured(count, func() string { return fmt.Sprintf(" bytes=%.0f", bytes) }, func() {
		ctx, cancel := context.WithCancel(context.Background())
		before, seed := memory(), uint64(1)
		var started, all sync.WaitGroup
		started.Add(int(count))
		all.Add(int(count))
		for i := range inbox {
			go func(in chan uint64) {
				defer all.Done()
				started.Done()
				heartbeat := time.NewTimer(10 * time.Second)
				defer heartbeat.Stop()
				for {
					heartbeat.Reset(10 * time.Second)
					select {
					case <-in:
						received.Add(1)
					case <-heartbeat.C:
						fail("a wait was too long")
					case <-ctx.Done():
						cancelled.Add(1)
						return
					}
				}
			}(inbox[i])
		}
		started.Wait()
		for i := uint64(0); i < 2*count; i++ {
			inbox[(i+random(&seed))%count] <- i
		}
		for received.Load() < 2*count {
			runtime.Gosched()
		}
		bytes = (memory() - before) / float64(count)
		cancel()
		all.Wait()
	})
	if cancelled.Load() != count {
		fail("%d sessions were cancelled", cancelled.Load())
	}
	return r
}

func workLimited(scale float64) result {
	const permits = 64
	count := scaled(20000, scale)
	slots := make(chan struct{}, permits)
	var done atomic.Uint64
	r := measured(count, nil, func() {
		var all sync.WaitGroup
		all.Add(int(count))
		for i := uint64(0); i < count; i++ {
			go func(number uint64) {
				defer all.Done()
				slots <- struct{}{}
				time.Sleep(200 * time.Microsecond)
				sink.Store(compute(number, 2*stepsPerUs))
				<-slots
				done.Add(1)
			}(i)
		}
		all.Wait()
	})
	if done.Load() != count {
		fail("%d were done", done.Load())
	}
	return r
}

func workBursts(scale float64) result {
	const jobs, jobUs = 30, 20
	count := scaled(200, scale)
	var sum atomic.Uint64
	var busy time.Duration
	r := measured(count, nil, func() {
		for i := uint64(0); i < count; i++ {
			time.Sleep(time.Millisecond)
			begin := time.Now()
			var all sync.WaitGroup
			all.Add(jobs)
			for k := uint64(0); k < jobs; k++ {
				go func(number uint64) {
					defer all.Done()
					sink.Store(compute(number, jobUs*stepsPerUs))
					sum.Add(number)
				}(k)
			}
			all.Wait()
			busy += time.Since(begin)
		}
	})
	if sum.Load() != count*jobs*(jobs-1)/2 {
		fail("the sum is %d", sum.Load())
	}
	r.ns = float64(busy.Nanoseconds())
	return r
}

const (
	cacheValues    = 4096
	cacheKeys      = 16384
	cacheBuckets   = 8192
	cacheMissSteps = 20
)

type cacheEntry struct {
	key, newer, older, chain uint32
	value                    uint64
}

type lruCache struct {
	lock         sync.Mutex
	used         uint32
	buckets      [cacheBuckets]uint32
	entries      [cacheValues + 1]cacheEntry
	hits, misses uint64
}

func (c *lruCache) bucket(key uint32) *uint32 {
	return &c.buckets[(key*2654435761>>16)%cacheBuckets]
}

func (c *lruCache) find(key uint32) uint32 {
	i := *c.bucket(key)
	for i != 0 && c.entries[i].key != key {
		i = c.entries[i].chain
	}
	return i
}

func (c *lruCache) takeOut(i uint32) {
	e := &c.entries[i]
	c.entries[e.newer].older = e.older
	c.entries[e.older].newer = e.newer
}

func (c *lruCache) putFirst(i uint32) {
	first := c.entries[0].older
	c.entries[i].newer = 0
	c.entries[i].older = first
	c.entries[first].newer = i
	c.entries[0].older = i
}

func (c *lruCache) lookUp(key uint32) (uint64, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	i := c.find(key)
	if i == 0 {
		c.misses++
		return 0, false
	}
	c.takeOut(i)
	c.putFirst(i)
	c.hits++
	return c.entries[i].value, true
}

func (c *lruCache) makeRoom() uint32 {
	if c.used < cacheValues {
		c.used++
		return c.used
	}
	oldest := c.entries[0].newer
	from := c.bucket(c.entries[oldest].key)
	for *from != oldest {
		from = &c.entries[*from].chain
	}
	*from = c.entries[oldest].chain
	c.takeOut(oldest)
	return oldest
}

func (c *lruCache) store(key uint32, value uint64) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.find(key) != 0 {
		return
	}
	i, bucket := c.makeRoom(), c.bucket(key)
	c.entries[i].key, c.entries[i].value, c.entries[i].chain = key, value, *bucket
	*bucket = i
	c.putFirst(i)
}

func workCache(scale float64) result {
	const clients = 200
	each := scaled(2000000, scale)/clients + 1
	cache := new(lruCache)
	r := measured(each*clients, nil, func() {
		var all sync.WaitGroup
		all.Add(clients)
		for i := uint64(0); i < clients; i++ {
			go func(number uint64) {
				defer all.Done()
				seed := number + 1
				for k := uint64(0); k < each; k++ {
					key := uint32((random(&seed) % cacheKeys) * (random(&seed) % cacheKeys) / cacheKeys)
					if value, found := cache.lookUp(key); !found {
						cache.store(key, compute(uint64(key), cacheMissSteps))
					} else if value != compute(uint64(key), cacheMissSteps) {
						fail("the value of another key")
					}
				}
			}(i)
		}
		all.Wait()
	})
	listed := uint32(0)
	for i := cache.entries[0].older; i != 0; i = cache.entries[i].older {
		listed++
	}
	if cache.hits+cache.misses != each*clients || listed != cache.used {
		fail("the cache is damaged")
	}
	return r
}

type logLine struct {
	sum  uint64
	size uint64
	text [56]byte
}

func workLog(scale float64) result {
	const senders, capacity, text, steps, buffer, pause = 64, 256, 56, 40, 65536, 10 * time.Millisecond
	each := scaled(1000000, scale)/senders + 1
	lines := make(chan logLine, capacity)
	var count, sum, bytes uint64
	r := measured(each*senders, nil, func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			kept := make([]byte, 0, buffer)
			flush := time.NewTimer(pause)
			for {
				select {
				case line, open := <-lines:
					if !open {
						bytes += uint64(len(kept))
						return
					}
					if len(kept)+int(line.size) > buffer {
						bytes += uint64(len(kept))
						kept = kept[:0]
						flush.Reset(pause)
					}
					kept = append(kept, line.text[:line.size]...)
					sum += line.sum
					count++
				case <-flush.C:
					bytes += uint64(len(kept))
					kept = kept[:0]
					flush.Reset(pause)
				}
			}
		}()
		var all sync.WaitGroup
		all.Add(senders)
		for k := uint64(0); k < senders; k++ {
			go func(seed uint64) {
				defer all.Done()
				for i := uint64(0); i < each; i++ {
					seed += i
					line := logLine{sum: compute(seed, steps)}
					line.size = 20 + line.sum%(text-20)
					for at := range line.text[:line.size] {
						line.text[at] = 'a' + byte(line.sum%26)
					}
					lines <- line
				}
			}(k + 1)
		}
		all.Wait()
		close(lines)
		<-done
	})
	expected := uint64(0)
	for k := uint64(0); k < senders; k++ {
		seed := k + 1
		for i := uint64(0); i < each; i++ {
			seed += i
			expected += compute(seed, steps)
		}
	}
	if count != each*senders || sum != expected || bytes < 20*count {
		fail("%d lines of %d", count, each*senders)
	}
	return r
}

// The programs of bench/work; nil: there is no such name.
func work(name string, scale float64) *result {
	programs := map[string]func() result{
		"actors":         func() result { return workActors(scale) },
		"request":        func() result { return workRequest(scale) },
		"fanout0":        func() result { return workFanout(scaled(1000000, scale), 0) },
		"fanout5":        func() result { return workFanout(scaled(100000, scale), 5) },
		"fanout50":       func() result { return workFanout(scaled(10000, scale), 50) },
		"service_5k":     func() result { return workService(5000, scale) },
		"service_30k":    func() result { return workService(30000, scale) },
		"broadcast_chan": func() result { return workBroadcastChan(scale) },
		"broadcast_cond": func() result { return workBroadcastCond(scale) },
		"rwlock":         func() result { return workRWLock(scale) },
		"waves":          func() result { return workWaves(scale) },
		"nest":           func() result { return workNest(scale) },
		"timeouts":       func() result { return workTimeouts(scale) },
		"cold":           func() result { return workCold(scale) },
		"chameneos":      func() result { return workChameneos(scale) },
		"tree":           func() result { return workTree(scale) },
		"sort":           func() result { return workSort(scale) },
		"pipeline": func() result {
			return workPipeline(scaled(80000, scale), 8, 16, []uint64{stepsPerUs, stepsPerUs, stepsPerUs, stepsPerUs})
		},
		"stages":   func() result { return workPipeline(scaled(200000, scale), 1, 32, []uint64{150, 675, 75, 375}) },
		"sessions": func() result { return workSessions(scale) },
		"limited":  func() result { return workLimited(scale) },
		"bursts":   func() result { return workBursts(scale) },
		"cache":    func() result { return workCache(scale) },
		"log":      func() result { return workLog(scale) },
	}
	program, found := programs[name]
	if !found {
		return nil
	}
	r := program()
	return &r
}
