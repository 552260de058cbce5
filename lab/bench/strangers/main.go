//go:build unix

// Command strangers measures what protection against strangers costs, on real processes: the
// processor time and the rate of messages between two members without guard, with it, with a secret
// and with TLS, and the latency of one peer's requests while another peer floods the same member.
// The variants run in turn. Absolute numbers depend on the load of the machine; ratios depend less
// on it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/concord-go/concord/lab/bench/internal/measure"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/testkit/pki"
)

var (
	rounds = flag.Int("rounds", 7, "rounds of each comparison")
	each   = flag.Duration("each", 2*time.Second, "length of one measurement")
	size   = flag.Int("size", 100, "bytes of a message")
	only   = flag.String("only", "", "of throughput and flood, that one")
	mode   = flag.String("mode", "", "of the flood, only this mode")
)

// Modes of the members. In bare mode remoting has the batches and queues of node.Remote.
const (
	stock   = "Proto.Actor's defaults"
	bare    = "no guard"
	guarded = "guard"
	secret  = "guard and secret"
	withTLS = "guard and TLS"
	limited = "guard and MaxRate 20,000"
)

var modes = []string{stock, bare, guarded, secret, withTLS}

func main() {
	if raw := os.Getenv(specEnv); raw != "" {
		if err := serve(raw); err != nil {
			log.Fatal(err)
		}
		return
	}
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() (err error) {
	dir, err := os.MkdirTemp("", "strangers")
	if err != nil {
		return err
	}
	d := &driver{dir: dir}
	defer func() {
		d.stop()
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	fmt.Printf("load %s\n\n", load())
	if *only != "flood" {
		if err := d.throughput(); err != nil {
			return err
		}
	}
	if *only != "throughput" {
		if err := d.flood(); err != nil {
			return err
		}
	}
	fmt.Printf("load %s\n", load())
	return nil
}

func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}

// driver starts the processes.
type driver struct {
	dir     string
	ca      *pki.Authority
	running []*process
}

// process is a member. It answers each line on its standard input with one on its standard output.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	address string
}

func (d *driver) start(mode string) (*process, error) {
	s := spec{Mode: mode}
	switch mode {
	case secret:
		s.Secret = filepath.Join(d.dir, "secret")
		if err := os.WriteFile(s.Secret, []byte("the secret of this cluster\n"),
			0o600); err != nil {
			return nil, err
		}
	case withTLS:
		var err error
		if s.TLS, err = d.certificate(); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), specEnv+"="+string(raw))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	d.running = append(d.running, p)
	up, err := p.hear()
	p.address = up.Address
	return p, err
}

func (d *driver) certificate() (*node.TLS, error) {
	if d.ca == nil {
		ca, err := pki.NewAuthority("bench")
		if err != nil {
			return nil, err
		}
		d.ca = ca
	}
	authority, err := d.ca.Write(d.dir)
	if err != nil {
		return nil, err
	}
	cert, key, err := d.ca.WriteMember(d.dir, fmt.Sprint("member-", len(d.running)),
		pki.Member{Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return nil, err
	}
	return node.TLSFiles(cert, key, authority), nil
}

func (d *driver) stop() {
	for _, p := range d.running {
		_ = p.in.Close() // it ends then
		_ = p.cmd.Wait()
	}
	d.running = nil
}

// ask sends a command and waits for its result.
func (p *process) ask(c command) (result, error) {
	if err := p.say(c); err != nil {
		return result{}, err
	}
	return p.hear()
}

func (p *process) say(c command) error {
	raw, err := json.Marshal(c)
	if err == nil {
		_, err = fmt.Fprintln(p.in, string(raw))
	}
	return err
}

func (p *process) hear() (r result, err error) {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("member at %q: %w", p.address, err)
	}
	return r, json.Unmarshal(line, &r)
}

// throughput prints the cost of a message from one member to another in each mode.
func (d *driver) throughput() error {
	type pair struct{ from, to *process }
	pairs := map[string]pair{}
	for _, m := range modes {
		to, err := d.start(m)
		if err != nil {
			return err
		}
		from, err := d.start(m)
		if err != nil {
			return err
		}
		pairs[m] = pair{from, to}
	}
	cost, rate := map[string][]float64{}, map[string][]float64{}
	for round := range *rounds + 1 {
		for _, m := range modes {
			p := pairs[m]
			before, err := p.to.ask(command{Do: "cpu"})
			if err != nil {
				return err
			}
			r, err := p.from.ask(command{Do: "send", To: p.to.address, For: *each, Size: *size})
			if err != nil {
				return err
			}
			after, err := p.to.ask(command{Do: "cpu"})
			if err != nil {
				return err
			}
			if round == 0 {
				continue // connections, code and heaps were cold
			}
			n := float64(max(r.Messages, 1))
			cost[m] = append(cost[m], float64((r.CPU+after.CPU-before.CPU).Nanoseconds())/n)
			rate[m] = append(rate[m], n/r.Took.Seconds())
		}
	}
	d.stop()
	fmt.Printf("messages of %d bytes from one member to another, median of %d rounds in turn\n\n",
		*size, *rounds)
	fmt.Println("| mode | processor time a message, both ends | beside no guard | messages a second |")
	fmt.Println("|---|---|---|---|")
	for _, m := range modes {
		shares := make([]float64, *rounds)
		for i := range shares {
			shares[i] = cost[m][i] / cost[bare][i]
		}
		fmt.Printf("| %s | %.2f µs | %+.0f %% | %.0f |\n", m, measure.Median(cost[m])/1000,
			100*(measure.Median(shares)-1), measure.Median(rate[m]))
	}
	fmt.Println()
	return nil
}

// flood prints the latency of a peer's requests to a member: alone, while another peer floods a
// third process, which needs as much of the machine, and while it floods the member.
func (d *driver) flood() error {
	fmt.Printf("a request every %v, answered by a member, median of %d rounds in turn\n\n",
		pingEvery, *rounds)
	fmt.Println("| mode | | median | 99 % within | flood's messages a second |")
	fmt.Println("|---|---|---|---|---|")
	for _, m := range append(modes, limited) {
		if *mode != "" && m != *mode {
			continue
		}
		var all [4]*process
		for i := range all {
			p, err := d.start(m)
			if err != nil {
				return err
			}
			all[i] = p
		}
		member, peer, flooder, other := all[0], all[1], all[2], all[3]
		cases := []struct {
			name string
			to   *process // of the flood
		}{{"no flood", nil}, {"flood of another process", other}, {"flood", member}}
		p50, p99, rate := map[string][]time.Duration{}, map[string][]time.Duration{},
			map[string][]float64{}
		for round := range *rounds + 1 {
			for _, c := range cases {
				if c.to != nil {
					if err := flooder.say(command{Do: "send", To: c.to.address,
						For: *each + time.Second, Size: *size}); err != nil {
						return err
					}
				}
				r, err := peer.ask(command{Do: "ping", To: member.address, For: *each})
				if err != nil {
					return err
				}
				sent := 0.0
				if c.to != nil {
					f, err := flooder.hear()
					if err != nil {
						return err
					}
					sent = float64(f.Messages) / f.Took.Seconds()
				}
				if round > 0 {
					p50[c.name], p99[c.name] = append(p50[c.name], r.P50),
						append(p99[c.name], r.P99)
					rate[c.name] = append(rate[c.name], sent)
				}
			}
		}
		d.stop()
		for _, c := range cases {
			round := func(of []time.Duration) time.Duration {
				return measure.Median(of).Round(10 * time.Microsecond)
			}
			fmt.Printf("| %s | %s | %v | %v | %.0f |\n", m, c.name, round(p50[c.name]),
				round(p99[c.name]), measure.Median(rate[c.name]))
		}
	}
	fmt.Println()
	return nil
}
