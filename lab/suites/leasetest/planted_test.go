package leasetest_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/testkit/leasetest"
)

// bugVariable names the bug with which a separate process of this test binary runs the suite.
const bugVariable = "CONCORD_LEASETEST_BUG"

// planted is a store with a bug. Methods that are not replaced work.
type planted struct {
	good interface {
		leasestore.Store
		leasestore.Watcher
		leasestore.Documents
	}
	load func(ctx context.Context, name string) (leasestore.Record, leasestore.Version, error)
	swap func(ctx context.Context, name string, old leasestore.Version,
		next leasestore.Record) (leasestore.Version, error)
	watch func(ctx context.Context, name string) iter.Seq2[leasestore.Record, error]
	batch func(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped
}

func (p *planted) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	return p.load(ctx, name)
}

func (p *planted) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	return p.swap(ctx, name, old, next)
}

func (p *planted) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return p.watch(ctx, name)
}

func (p *planted) LoadDocument(ctx context.Context, name string) ([]byte, leasestore.Version,
	error) {
	return p.good.LoadDocument(ctx, name)
}

func (p *planted) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	return p.good.SwapDocument(ctx, name, old, next)
}

func (p *planted) SwapAll(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
	return p.batch(ctx, swaps)
}

func correct() *planted {
	m := memory.New()
	return &planted{m, m.Load, m.Swap, m.Watch, each(m.Swap)}
}

// each makes the swaps of a batch one by one.
func each(swap func(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error),
) func(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
	return func(ctx context.Context, swaps []leasestore.Swap) (out []leasestore.Swapped) {
		for _, w := range swaps {
			v, err := swap(ctx, w.Name, w.Old, w.Next)
			out = append(out, leasestore.Swapped{Version: v, Err: err})
		}
		return out
	}
}

// bug is a bug and the claim that must detect it.
type bug struct {
	claim string
	plant func(p *planted)
}

func bugs() map[string]bug {
	return map[string]bug{
		"nothing": {"", func(*planted) {}},
		"swap does not compare": {"S2", func(p *planted) {
			p.swap = func(ctx context.Context, name string, _ leasestore.Version,
				next leasestore.Record) (leasestore.Version, error) {
				_, ver, _ := p.good.Load(ctx, name)
				return p.good.Swap(ctx, name, ver, next)
			}
		}},
		"compare and write are two steps": {"S4", func(p *planted) {
			p.swap = func(ctx context.Context, name string, old leasestore.Version,
				next leasestore.Record) (leasestore.Version, error) {
				_, ver, err := p.good.Load(ctx, name)
				if err != nil || ver != old {
					return "", errors.Join(err, leasestore.ErrConflict)
				}
				for range 100 {
					runtime.Gosched()
				}
				for {
					v, err := p.good.Swap(ctx, name, ver, next)
					if !errors.Is(err, leasestore.ErrConflict) {
						return v, err
					}
					_, ver, _ = p.good.Load(ctx, name)
				}
			}
		}},
		"load lags behind": {"S9", func(p *planted) {
			var last sync.Map // the previous record of each name
			var calls atomic.Int64
			type shown struct {
				rec leasestore.Record
				ver leasestore.Version
			}
			p.load = func(ctx context.Context, name string) (leasestore.Record,
				leasestore.Version, error) {
				rec, ver, err := p.good.Load(ctx, name)
				before, ok := last.Swap(name, shown{rec, ver})
				if ok && err == nil && calls.Add(1)%5 == 0 {
					return before.(shown).rec, before.(shown).ver, nil
				}
				return rec, ver, err
			}
		}},
		"the version returned is the old one": {"S2", func(p *planted) {
			p.swap = func(ctx context.Context, name string, old leasestore.Version,
				next leasestore.Record) (leasestore.Version, error) {
				_, err := p.good.Swap(ctx, name, old, next)
				return old, err
			}
		}},
		"equal records have equal versions": {"S3", plantEqualVersions},
		"a blank record is deleted":         {"S8", plantDeletion},
		"an ended context is a conflict": {"S5", func(p *planted) {
			p.swap = func(ctx context.Context, name string, old leasestore.Version,
				next leasestore.Record) (leasestore.Version, error) {
				if ctx.Err() != nil {
					return "", leasestore.ErrConflict
				}
				return p.good.Swap(ctx, name, old, next)
			}
		}},
		"a batch ends with its first conflict":      {"S17", plantBatchThatEnds},
		"outcomes of a batch are in another order":  {"S17", plantBatchInOrder},
		"a batch compares first and writes later":   {"S18", plantBatchInSteps},
		"a batch that is cut is refused as a whole": {"S19", plantBatchCut},
		"an ended context is not heeded": {"S5", func(p *planted) {
			p.swap = func(ctx context.Context, name string, old leasestore.Version,
				next leasestore.Record) (leasestore.Version, error) {
				return p.good.Swap(context.WithoutCancel(ctx), name, old, next)
			}
		}},
		"a conflict is an unknown error": {"S2", func(p *planted) {
			p.swap = func(ctx context.Context, name string, old leasestore.Version,
				next leasestore.Record) (leasestore.Version, error) {
				v, err := p.good.Swap(ctx, name, old, next)
				if errors.Is(err, leasestore.ErrConflict) {
					err = errors.New("409")
				}
				return v, err
			}
		}},
		"a conflict counts as refused too": {"S11", func(p *planted) {
			p.swap = func(ctx context.Context, name string, old leasestore.Version,
				next leasestore.Record) (leasestore.Version, error) {
				v, err := p.good.Swap(ctx, name, old, next)
				if errors.Is(err, leasestore.ErrConflict) {
					err = errors.Join(err, leasestore.ErrRefused)
				}
				return v, err
			}
		}},
		"a write that was done is told as a conflict": {"S10", func(p *planted) {
			var calls atomic.Int64
			p.swap = func(ctx context.Context, name string, old leasestore.Version,
				next leasestore.Record) (leasestore.Version, error) {
				v, err := p.good.Swap(ctx, name, old, next)
				if err == nil && strings.HasPrefix(name, "r") && calls.Add(1)%20 == 0 {
					return "", leasestore.ErrConflict
				}
				return v, err
			}
		}},
		"tokens are 53 bits wide": {"S6", changed(func(r *leasestore.Record) {
			r.Token = coordination.Token(float64(r.Token))
		})},
		"the TTL is in seconds, of 16 bits": {"S6", changed(func(r *leasestore.Record) {
			r.TTL &= 1<<36 - 1
		})},
		"owners are cut": {"S6", changed(func(r *leasestore.Record) {
			r.Nonce = r.Nonce[:min(len(r.Nonce), 63)]
		})},
		"names ignore case": {"A2", named(strings.ToLower)},
		"names are cut after 63 bytes": {"A2", named(func(n string) string {
			return n[:min(len(n), 63)]
		})},
		"names lose trailing spaces": {"A2", named(func(n string) string {
			return strings.TrimRight(n, " ")
		})},
		"names are made safe": {"A2", named(func(n string) string {
			return regexp.MustCompile(`[^a-zA-Z0-9]`).ReplaceAllString(n, "-")
		})},
		"watch tells of the first change only": {"S7", func(p *planted) {
			p.watch = func(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
				return func(yield func(leasestore.Record, error) bool) {
					told := 0
					for rec, err := range p.good.Watch(ctx, name) {
						if told++; told <= 2 && !yield(rec, err) {
							return
						}
					}
				}
			}
		}},
		"watch does not begin with the present": {"S7", func(p *planted) {
			p.watch = func(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
				return func(yield func(leasestore.Record, error) bool) {
					first := true
					for rec, err := range p.good.Watch(ctx, name) {
						if !first && !yield(rec, err) {
							return
						}
						first = false
					}
				}
			}
		}},
		"leases are not compared": {"H1", func(p *planted) {
			p.swap = func(ctx context.Context, name string, old leasestore.Version,
				next leasestore.Record) (leasestore.Version, error) {
				if strings.HasPrefix(name, "h") {
					_, old, _ = p.good.Load(ctx, name)
				}
				return p.good.Swap(ctx, name, old, next)
			}
		}},
		"a deleted record gets its versions again": {"S3", nil},
		"a damaged record is no record":            {"G6", nil},
		"another handle is another store":          {"S12", nil},
	}
}

// changed alters records as they are written.
func changed(spoil func(*leasestore.Record)) func(*planted) {
	return func(p *planted) {
		p.swap = func(ctx context.Context, name string, old leasestore.Version,
			next leasestore.Record) (leasestore.Version, error) {
			spoil(&next)
			return p.good.Swap(ctx, name, old, next)
		}
	}
}

// named alters names.
func named(as func(string) string) func(*planted) {
	return func(p *planted) {
		p.load = func(ctx context.Context, name string) (leasestore.Record,
			leasestore.Version, error) {
			return p.good.Load(ctx, as(name))
		}
		p.swap = func(ctx context.Context, name string, old leasestore.Version,
			next leasestore.Record) (leasestore.Version, error) {
			return p.good.Swap(ctx, as(name), old, next)
		}
	}
}

// TestPlanted runs the claim that each bug breaks in a separate process, and requires that it
// fails. It skips the other claims, because checking the history of a broken store may take
// minutes. The store without a bug passes all claims.
func TestPlanted(t *testing.T) {
	if os.Getenv(bugVariable) != "" {
		t.Skip("within")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(bugs())) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := bugs()[name].claim
			only := cmp.Or(claim, "(S|A2|G6|D6|B1|H1).*")
			cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestBuggy$/^"+only+"_",
				"-test.timeout=10m", "-test.v")
			cmd.Env = append(os.Environ(), bugVariable+"="+name)
			out, err := cmd.CombinedOutput()
			failed := regexp.MustCompile(`--- FAIL: TestBuggy/(\S+)`).FindAllString(string(out), -1)
			switch {
			case claim == "" && err != nil:
				t.Errorf("the correct store fails:\n%s", out)
			case claim != "" && !slices.ContainsFunc(failed, func(f string) bool {
				return regexp.MustCompile(`/` + claim + `_`).MatchString(f)
			}):
				t.Errorf("%s was not noticed: %v %v\n%s", claim, err, failed, out)
			case claim != "" && !regexp.MustCompile(`: `+claim+`_\w+: `).Match(out):
				t.Errorf("no failure names the claim %s:\n%s", claim, out)
			}
		})
	}
}

// TestBuggy runs the suite on the store with the bug named in the environment.
func TestBuggy(t *testing.T) {
	name := os.Getenv(bugVariable)
	if name == "" {
		t.Skip("run by TestPlanted")
	}
	open := func(*testing.T) leasestore.Store {
		p := correct()
		if plant := bugs()[name].plant; plant != nil {
			plant(p)
		}
		return p
	}
	options := leasetest.Options{}
	switch name {
	case "a deleted record gets its versions again":
		open = func(*testing.T) leasestore.Store { return &renewable{planted: correct()} }
		options.Delete = func(s leasestore.Store, _ string) error { return s.(*renewable).forget() }
	case "a damaged record is no record":
		open = func(*testing.T) leasestore.Store { return &renewable{planted: correct()} }
		options.Damage = func(s leasestore.Store, _ string) error { return s.(*renewable).forget() }
	case "another handle is another store":
		options.Reopen = func(*testing.T, leasestore.Store) (leasestore.Store, error) {
			return correct(), nil
		}
	}
	leasetest.Run(t, open, options)
}
