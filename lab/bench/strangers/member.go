//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/node"
)

const specEnv = "CONCORD_BENCH_MEMBER"

// spec configures a member process.
type spec struct {
	Mode   string
	Secret string
	TLS    *node.TLS
}

// command is a line on the standard input of a member.
type command struct {
	Do   string // cpu, send or ping
	To   string // address of another member
	For  time.Duration
	Size int
}

// result is the answer.
type result struct {
	Address  string
	CPU      time.Duration // used until now, or by the command
	Messages int           // that the receiver has confirmed
	Took     time.Duration
	P50, P99 time.Duration
}

const (
	window    = 20_000 // messages without confirmation
	confirm   = 500    // one confirmation for as many messages
	pingEvery = 2 * time.Millisecond
)

// target is the actor that others send to: it confirms messages as "sink", and answers requests as
// "echo".
type target struct{ got int }

func (a *target) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *wrapperspb.BytesValue:
		if a.got++; a.got%confirm == 0 {
			ctx.Respond(wrapperspb.Int64(confirm))
		}
	case *wrapperspb.UInt64Value:
		ctx.Respond(m)
	}
}

// source receives the confirmations and answers.
type source struct {
	confirmed chan int
	answered  chan uint64
}

func (a *source) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *wrapperspb.Int64Value:
		a.confirmed <- int(m.Value)
	case *wrapperspb.UInt64Value:
		a.answered <- m.Value
	}
}

func remoting(s spec) (*remote.Config, error) {
	switch s.Mode {
	case stock:
		return remote.Configure("127.0.0.1", 0), nil
	case bare:
		like, err := node.Remote(node.Config{})
		if err != nil {
			return nil, err
		}
		return remote.Configure("127.0.0.1", 0, remote.WithEndpointWriterQueueSize(
			like.EndpointWriterQueueSize),
			remote.WithEndpointWriterBatchSize(like.EndpointWriterBatchSize),
			remote.WithEndpointManagerQueueSize(like.EndpointManagerQueueSize)), nil
	}
	cfg := node.Config{SecretFile: s.Secret, TLS: s.TLS}
	if s.Mode == limited {
		cfg.MaxRate = 20_000
	}
	return node.Remote(cfg)
}

// serve is the main function of a member. It ends with its standard input.
func serve(raw string) error {
	var s spec
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return err
	}
	rc, err := remoting(s)
	if err != nil {
		return err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: slog.LevelError}))
	}))
	r := remote.NewRemote(system, rc)
	r.Start()
	src := &source{confirmed: make(chan int, 2*window), answered: make(chan uint64, 1<<16)}
	for _, name := range []string{"sink", "echo"} {
		props := actor.PropsFromProducer(func() actor.Actor { return &target{} })
		if _, err := system.Root.SpawnNamed(props, name); err != nil {
			return err
		}
	}
	m := &member{system: system, source: src}
	m.self = system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return src }))
	answer := json.NewEncoder(os.Stdout)
	if err := answer.Encode(result{Address: system.Address()}); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var c command
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return err
		}
		before := processorTime()
		var r result
		switch c.Do {
		case "send":
			r = m.send(c)
		case "ping":
			r = m.ping(c)
		}
		if r.CPU = processorTime(); c.Do != "cpu" {
			r.CPU -= before
		}
		if err := answer.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

type member struct {
	system *actor.ActorSystem
	self   *actor.PID
	source *source
}

// send sends as fast as the receiver confirms. It ends when all messages are confirmed.
func (m *member) send(c command) result {
	to := actor.NewPID(c.To, "sink")
	msg := wrapperspb.Bytes(make([]byte, c.Size))
	begun := time.Now()
	sent, confirmed := 0, 0
	for time.Since(begun) < c.For {
		for sent-confirmed < window {
			for range confirm {
				m.system.Root.RequestWithCustomSender(to, msg, m.self)
			}
			sent += confirm
		}
		confirmed += <-m.source.confirmed
	}
	for confirmed < sent {
		select {
		case n := <-m.source.confirmed:
			confirmed += n
		case <-time.After(30 * time.Second):
			fmt.Fprintf(os.Stderr, "%d messages of %d are lost\n", sent-confirmed, sent)
			return result{Messages: confirmed, Took: time.Since(begun)}
		}
	}
	return result{Messages: confirmed, Took: time.Since(begun)}
}

// ping sends a request at each due time, whether the former ones were answered or not. A latency
// counts from the time at which its request was due.
func (m *member) ping(c command) result {
	to := actor.NewPID(c.To, "echo")
	n := int(c.For / pingEvery)
	took := make([]time.Duration, n)
	begun := time.Now()
	due := func(i uint64) time.Time { return begun.Add(time.Duration(i) * pingEvery) }
	answered := make(chan int)
	go func() {
		timeout := time.After(c.For + 30*time.Second)
		for got := range n {
			select {
			case i := <-m.source.answered:
				took[i] = time.Since(due(i))
			case <-timeout:
				answered <- got
				return
			}
		}
		answered <- n
	}()
	for i := range uint64(n) {
		time.Sleep(time.Until(due(i)))
		m.system.Root.RequestWithCustomSender(to, wrapperspb.UInt64(i), m.self)
	}
	got := <-answered
	if got < n {
		fmt.Fprintf(os.Stderr, "%d requests of %d were not answered\n", n-got, n)
	}
	slices.Sort(took)
	return result{Messages: got, P50: took[n/2], P99: took[n*99/100]}
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
