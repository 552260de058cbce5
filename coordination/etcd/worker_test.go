//go:build stores

package etcd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/leasestore"
)

// workerConfig is as short as a busy machine allows.
func workerConfig() coordination.Config {
	return coordination.Config{TTL: 3 * time.Second, RenewInterval: 500 * time.Millisecond,
		OperationTimeout: 500 * time.Millisecond, RetryInterval: 200 * time.Millisecond,
		Drain: 500 * time.Millisecond, Margin: 250 * time.Millisecond}
}

// worker runs a process of the scenarios. It reads one command per line from its input, executes
// it, and answers each with a line. CONCORD_WORKER names its store, as kind and place; its effects
// go to CONCORD_TARGET. CONCORD_TTL, if set, is a longer TTL.
func worker(where string) error {
	store, closeStore, err := workerStore(where)
	if err != nil {
		return err
	}
	defer closeStore()
	cfg := workerConfig()
	if ttl, err := time.ParseDuration(os.Getenv("CONCORD_TTL")); err == nil {
		cfg.TTL = ttl
	}
	session, err := coordination.Open(store, cfg)
	if err != nil {
		return err
	}
	w := &working{session: session, lease: session.Lease("job"), in: bufio.NewScanner(os.Stdin)}
	w.say("ready")
	for w.in.Scan() {
		w.say("%s", w.carryOut(w.in.Text()))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return errors.Join(w.in.Err(), session.Close(ctx))
}

func workerStore(where string) (leasestore.Store, func(), error) {
	kind, place, _ := strings.Cut(where, " ")
	if kind == "file" {
		s, err := file.Open(place)
		return s, func() { _ = s.Close() }, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{place}, Logger: quiet})
	if err != nil {
		return nil, nil, err
	}
	s, err := etcd.New(client, etcd.Config{Prefix: os.Getenv("CONCORD_PREFIX")})
	return s, func() { _ = client.Close() }, err
}

type working struct {
	session *coordination.Session
	lease   *coordination.Lease
	grant   *coordination.Grant
	in      *bufio.Scanner
}

func (w *working) say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (w *working) carryOut(command string) string {
	switch command {
	case "try":
		return w.granted(w.lease.TryAcquire(context.Background()))
	case "acquire":
		return w.granted(w.lease.Acquire(context.Background()))
	case "check":
		return w.check()
	case "effect":
		return w.effect()
	}
	return "no command: " + command
}

func (w *working) granted(g *coordination.Grant, err error) string {
	switch {
	case err == nil:
		w.grant = g
		return fmt.Sprintf("granted %d %d", g.Token(), time.Now().UnixNano())
	case errors.Is(err, coordination.ErrHeld):
		return "held"
	}
	return "unknown"
}

// check reports when it began: its result was true at that time.
func (w *working) check() string {
	at := time.Now().UnixNano()
	if err := w.grant.Check(); err != nil {
		return "lost"
	}
	return fmt.Sprint("holds ", at)
}

// effect asks the target for an effect, some time after the check that allows it: the test may stop
// the process in between.
func (w *working) effect() string {
	if err := w.grant.Check(); err != nil {
		return "lost"
	}
	w.say("checked")
	w.in.Scan()
	r, err := http.NewRequest(http.MethodPut, os.Getenv("CONCORD_TARGET"), http.NoBody)
	if err != nil {
		return err.Error()
	}
	r.Header.Set(fence.Header, w.grant.Token().String())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.Status
}
