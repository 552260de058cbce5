//go:build linux

// Command night is a member of a small shop, its customer, and a stranger, for nights on call that
// are played with night.sh:
//
//	night member concord.yaml    a member: leases, entities, a singleton, durable data, a cockpit
//	night customer HOST N        sends orders to a member, N at the same time
//	night stranger HOST          sends messages to a member, without the secret of the cluster
//
// A member serves its cockpit at port 7070, with /metrics and the token "night"; /readyz and
// orders at port 8080. It orders some things itself all the time, and logs when orders begin and
// cease to fail.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/config"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

func main() {
	err := fmt.Errorf("usage: night member FILE | customer HOST N | stranger HOST")
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "member":
		err = member(args[1])
	case len(args) == 3 && args[0] == "customer":
		n, _ := strconv.Atoi(args[2])
		customer(args[1], n)
	case len(args) == 2 && args[0] == "stranger":
		stranger(args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(node.ExitCode(err))
}

var kinds = config.Kinds{
	Providers: map[string]config.Provider{"automanaged": automanaged.Configured},
	Leases:    map[string]leaseconfig.Opener{"etcd": etcd.Opener},
	Disks:     map[string]config.Disk{"bbolt": bbolt.Opener},
}

var orders = distributeddata.NewPrefix("orders-", crdt.ORSet[string]{})

const token = "night"

// shop is the program of a member.
type shop struct {
	data     *distributeddata.Replicator
	accounts *sharding.Region[*wrapperspb.StringValue]
	clerk    *singleton.Singleton
	made     sync.Once // in the first incarnation; the handles stay the same
	log      *slog.Logger
}

func member(file string) (err error) {
	f, err := config.Load(file, kinds)
	if err != nil {
		return err
	}
	data, err := f.Replicator("shop")
	if err != nil {
		return err
	}
	if data.Config.Store, err = data.OpenStore(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Config.Store.Close()) }()
	clerk, err := f.Singleton("clerk")
	if err != nil {
		return err
	}
	account, err := f.Sharding("account")
	if err != nil {
		return err
	}
	exporter, err := prometheus.New()
	if err != nil {
		return err
	}
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(exporter)))
	host, health := f.Node.Remote.Host, new(node.Health)
	ui, err := cockpit.New(cockpit.Config{Name: data.Config.Member, Health: health,
		Metrics: promhttp.Handler(), Values: []cockpit.Values{cockpit.ValuesOf(orders)},
		Authorize: cockpit.Password(token), Actions: true, Peers: cockpits(host),
		PeerClient: &http.Client{Transport: bearer{}}})
	if err != nil {
		return err
	}
	defer ui.Close()
	f.Node.Health = health
	f.Node.Logger = slog.New(ui.Log(slog.NewTextHandler(os.Stderr, nil)))
	s := &shop{log: f.Node.Logger.With(slog.String("component", "shop"))}
	web := http.NewServeMux()
	web.Handle("/livez", health)
	web.Handle("/readyz", health)
	for at, h := range map[string]http.Handler{":7070": ui, ":8080": web} {
		l, err := net.Listen("tcp", host+at)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
		defer server.Close()
		go func() { _ = server.Serve(l) }()
	}
	return node.Run(context.Background(), f.Node, func(n *node.Node) error {
		dd, err := distributeddata.New(n.System, data.Config)
		if err != nil {
			return err
		}
		accounts, err := sharding.New[*wrapperspb.StringValue](n.System, n.Session, dd, account,
			func(sharding.Entity) actor.Actor { return answerer{} })
		if err != nil {
			return err
		}
		office, err := singleton.New(n.System, n.Session, clerk,
			func(coordination.Tenure) actor.Actor { return answerer{} })
		if err != nil {
			return err
		}
		s.made.Do(func() {
			s.data, s.accounts, s.clerk = dd, accounts, office
			web.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
				if err := s.order(r.Context(), r.FormValue("customer")); err != nil {
					http.Error(w, err.Error(), http.StatusServiceUnavailable)
				}
			})
		})
		n.Go(s.orderAlways)
		return ui.Attach(n, cockpit.Sources{
			Replicators: map[string]*distributeddata.Replicator{"shop": dd},
			Singletons:  map[string]*singleton.Singleton{"clerk": office},
			Shards:      []cockpit.Shards{accounts},
		})
	})
}

// answerer is every account, and the clerk.
type answerer struct{}

func (answerer) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
		ctx.Respond(m)
	}
}

// order asks the account of a customer and the clerk, and records the order durably.
func (s *shop) order(ctx context.Context, customer string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := s.accounts.Ref(customer).Ask(ctx, wrapperspb.String("?")); err != nil {
		return err
	}
	if _, err := s.clerk.Ask(ctx, wrapperspb.String("?")); err != nil {
		return err
	}
	id := strconv.FormatUint(rand.Uint64(), 36)
	_, err := orders.Key(customer).Update(ctx, s.data,
		func(w *crdt.Writer, set *crdt.ORSet[string]) error {
			set.Add(w, id)
			return nil
		}, distributeddata.Majority)
	return err
}

// orderAlways makes some orders a second until ctx ends.
func (s *shop) orderAlways(ctx context.Context) error {
	var failing time.Time
	for ctx.Err() == nil {
		err := s.order(ctx, fmt.Sprint("c", rand.IntN(50)))
		switch {
		case ctx.Err() != nil:
		case err != nil && failing.IsZero():
			failing = time.Now()
			s.log.Warn("orders fail", slog.Any("error", err))
		case err == nil && !failing.IsZero():
			s.log.Info("orders succeed again", slog.Duration("after", time.Since(failing)))
			failing = time.Time{}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// cockpits returns the cockpits of the other members.
func cockpits(host string) (urls []string) {
	for i := range 3 {
		if other := fmt.Sprintf("10.99.0.1%d", i+1); other != host {
			urls = append(urls, "http://"+other+":7070")
		}
	}
	return urls
}

// bearer adds the token of the cockpits.
type bearer struct{}

func (bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return http.DefaultTransport.RoundTrip(r)
}

// customer sends orders to a member, n at the same time, until it is killed.
func customer(host string, n int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	for range n {
		go func() {
			for {
				at := "http://" + host + ":8080/orders?customer=" + strconv.Itoa(rand.IntN(1e6))
				r, err := client.Post(at, "", nil)
				if err != nil {
					time.Sleep(time.Second)
					continue
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
			}
		}()
	}
	select {}
}

// stranger sends messages to the actors of a member until it is killed.
func stranger(host string) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	remote.NewRemote(system, remote.Configure("10.99.0.1", 0)).Start()
	clerk := actor.NewPID(host+":7000", "clerk")
	for {
		for range 1000 {
			system.Root.Send(clerk, wrapperspb.String("?"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
