// Package measure has what the benchmark programs share.
package measure

import (
	"cmp"
	"log/slog"
	"net"
	"runtime"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// System returns an actor system that logs nothing.
func System() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

// Ports returns ports of the loopback interface on which nothing listens.
func Ports(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// Heap returns the bytes of the heap and of stacks after a collection of garbage.
func Heap() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// Median returns the value in the middle, the upper one of two.
func Median[T cmp.Ordered](all []T) T {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
