package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// openCockpit serves the cockpit of this node on a loopback port. closeUI stops it.
func (m *member) openCockpit(health *node.Health) (closeUI func(), err error) {
	var peers []string
	for _, port := range m.cfg.Cockpits[1:] {
		peers = append(peers, "http://"+loopback(port))
	}
	m.ui, err = cockpit.New(cockpit.Config{
		Name: m.cfg.Name, Health: health, Peers: peers,
		// The port is open on this machine only, and the cluster lasts as long as the run. In
		// production, let Authorize ask for a secret: see cockpit.Password.
		Actions: true, Authorize: func(*http.Request, cockpit.Permission) error { return nil },
		Values: []cockpit.Values{cockpit.ValuesOf(stored)},
	})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", loopback(m.cfg.Cockpits[0]))
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: m.ui, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }() // returns when the server is closed
	return func() {
		m.ui.Close()
		_ = server.Close()
	}, nil
}

// show attaches the components of an incarnation to the cockpit.
func (m *member) show(n *node.Node, dd *distributeddata.Replicator,
	carts *sharding.Region[cartMessage], clerk *singleton.Singleton) error {
	return m.ui.Attach(n, cockpit.Sources{
		Replicators: map[string]*distributeddata.Replicator{"shop": dd},
		Singletons:  map[string]*singleton.Singleton{"clerk": clerk},
		Shards:      []cockpit.Shards{carts},
	})
}

// walkIns makes events for some carts that are not in the input.
type walkIns struct {
	nr map[string]uint64 // number of the last event of each cart
}

func (w walkIns) next() numbered {
	goods := []string{"milk", "bread", "cheese", "apples"}
	name := fmt.Sprint("walk-in-", rand.IntN(8))
	w.nr[name]++
	return numbered{event{Op: "set", Cart: name, Item: goods[rand.IntN(len(goods))],
		Qty: int64(1 + rand.IntN(5))}, w.nr[name]}
}

// keepOpen keeps the cluster busy for the cockpit until ctx ends: it changes carts, and restarts a
// killed node after ten seconds.
func (k *shopkeeper) keepOpen(ctx context.Context) {
	k.say.line("✓ the nodes keep running; open the cockpit: %s", k.address())
	k.say.line("  kill a node and watch it restart after ten seconds: kill -9 %d",
		k.pid(nodeCount-1))
	if k.orders != nil {
		readQuietly()
		k.say.line("  cut %s off from the others: type cut and Enter, and later heal",
			k.nodes[nodeCount-1].name)
		go k.obey(k.orders)
	}
	k.say.line("  press Ctrl-C to stop")
	customers := walkIns{map[string]uint64{}}
	e := customers.next()
	for pause(ctx, 250*time.Millisecond) == nil {
		i := rand.IntN(nodeCount)
		p, _ := k.nodes[i].get()
		select {
		case <-p.gone:
			k.say.line("  %s has exited", k.nodes[i].name)
			if pause(ctx, 10*time.Second) != nil {
				return
			}
			starting, cancel := context.WithTimeout(ctx, startTimeout)
			if err := k.start(starting, i); err == nil {
				p, _ = k.nodes[i].get()
				k.say.line("  %s is back: kill -9 %d", k.nodes[i].name, p.cmd.Process.Pid)
			}
			cancel()
			continue
		default:
		}
		one, cancel := context.WithTimeout(ctx, operationTimeout)
		if _, err := p.call(one, command{Event: &e}); err == nil {
			// else another node gets the event
			e = customers.next()
		}
		cancel()
	}
}

// obey reads lines: cut cuts the last node off from the others, heal mends the network. It returns
// at the end of in.
func (k *shopkeeper) obey(in io.Reader) {
	var mend func() // nil: nothing is cut
	last := nodeCount - 1
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch word := strings.TrimSpace(lines.Text()); {
		case word == "cut" && mend == nil:
			mend = k.links.isolate(last)
			k.say.line("✗ %s cut off from the others", k.nodes[last].name)
		case word == "heal" && mend != nil:
			mend()
			mend = nil
			k.say.line("✓ %s can reach the others again", k.nodes[last].name)
		case word != "":
			k.say.line("  %q has no effect now; type cut, and heal after it", word)
		}
	}
}

// address returns the URL of the cockpit of the first node.
func (k *shopkeeper) address() string { return "http://" + loopback(k.ports[2*nodeCount]) + "/" }

func (k *shopkeeper) pid(i int) int {
	p, _ := k.nodes[i].get()
	return p.cmd.Process.Pid
}

// cockpits returns the ports of all cockpits, starting with that of node i.
func (k *shopkeeper) cockpits(i int) (ports []int) {
	if !k.ui {
		return nil
	}
	for j := range nodeCount {
		ports = append(ports, k.ports[2*nodeCount+(i+j)%nodeCount])
	}
	return ports
}
