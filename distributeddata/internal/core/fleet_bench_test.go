//go:build unix

package core

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkMembers measures the traffic of n members with 10,000 keys, in virtual time: at rest,
// and the additional traffic caused by an update, a new member, a crash and a partition.
func BenchmarkMembers(b *testing.B) {
	for _, n := range []int{3, 10, 30, 100, 200} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			f := newFleet(n, 10_000)
			if !f.equal() {
				b.Fatal("not equal")
			}
			var idle pace
			for _, of := range []struct {
				name string
				run  func(b *testing.B)
			}{
				{"rest", func(b *testing.B) { idle = benchRest(b, f) }},
				{"update", func(b *testing.B) { benchUpdate(b, f, idle) }},
				{"load", func(b *testing.B) { benchLoad(b, f, idle) }},
				{"partition", func(b *testing.B) { benchPartition(b, f, idle) }},
				{"join", func(b *testing.B) { benchJoin(b, f, idle) }},
				{"crash", func(b *testing.B) { benchCrash(b, f, idle) }},
			} {
				b.Run("case="+of.name, func(b *testing.B) {
					for b.Loop() {
						of.run(b)
					}
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}

// pace is the traffic per second, and its cost in microseconds of processor time.
type pace struct{ messages, bytes, cpu float64 }

func benchRest(b *testing.B, f *fleet) pace {
	const seconds = 60
	before, cpu := f.all(), cpuTime()
	f.pass(seconds * time.Second)
	spent := f.since(before)
	b.ReportMetric(spent.messages/seconds/f.members(), "msgs/s")
	b.ReportMetric(spent.bytes/seconds/f.members(), "B/s")
	used := float64((cpuTime() - cpu).Microseconds())
	b.ReportMetric(used/seconds/f.members(), "cpu-µs/s")
	return pace{spent.messages / seconds, spent.bytes / seconds, used / seconds}
}

// benchUpdate measures updates a second apart, by one member after the other: what each costs its
// origin, and all members together, per other member.
func benchUpdate(b *testing.B, f *fleet, idle pace) {
	const updates = 20
	own := tally{}
	before, began := f.all(), f.now
	for range updates {
		i := f.rand.IntN(len(f.cores))
		mine := f.sent[i]
		f.update(i, fmt.Sprintf("key-%07d", f.rand.IntN(10_000)))
		f.pass(20 * time.Millisecond)
		own.messages, own.bytes = own.messages+f.sent[i].messages-mine.messages,
			own.bytes+f.sent[i].bytes-mine.bytes
		f.pass(980 * time.Millisecond)
	}
	f.rest()
	spent, others := f.since(before).less(idle, f.now.Sub(began)), f.members()-1
	b.ReportMetric(float64(own.messages)/updates/others, "origin-msgs/member")
	b.ReportMetric(float64(own.bytes)/updates/others, "origin-B/member")
	b.ReportMetric(spent.messages/updates/others, "msgs/member")
	b.ReportMetric(spent.bytes/updates/others, "B/member")
}

// benchLoad measures the cost per member and event of one update per member and second.
func benchLoad(b *testing.B, f *fleet, idle pace) {
	const seconds = 10
	before, cpu := f.all(), cpuTime()
	for i := range f.cores {
		for range seconds {
			f.after(f.upTo(seconds*time.Second), func() {
				f.update(i, fmt.Sprintf("key-%07d", f.rand.IntN(10_000)))
			})
		}
	}
	f.pass(seconds * time.Second)
	spent, events := f.since(before), f.members()*seconds
	b.ReportMetric(spent.messages/events/(f.members()-1), "msgs/event/member")
	b.ReportMetric(spent.bytes/events/(f.members()-1), "B/event/member")
	b.ReportMetric((float64((cpuTime()-cpu).Microseconds())-idle.cpu*seconds)/events/f.members(),
		"cpu-µs/event")
	took := f.until(time.Minute, f.equal)
	b.ReportMetric(float64(took.Milliseconds()), "ms-to-equal")
	f.rest()
}

// benchPartition separates the two halves of the members for ten seconds, with ten updates on
// either side.
func benchPartition(b *testing.B, f *fleet, idle pace) {
	f.cut = func(from, to int) bool { return from%2 != to%2 }
	for j := range 20 {
		for i := j % 2; i < len(f.cores); i += 2 {
			if f.rand.IntN(len(f.cores)/2) == 0 || i+2 >= len(f.cores) {
				f.update(i, fmt.Sprintf("key-%07d", f.rand.IntN(10_000)))
				break
			}
		}
		f.pass(500 * time.Millisecond)
	}
	f.cut = nil
	before, began := f.all(), f.now
	took := f.until(time.Minute, f.equal)
	if !f.equal() {
		b.Fatal("not equal")
	}
	f.rest()
	spent := f.since(before).less(idle, f.now.Sub(began))
	b.ReportMetric(spent.messages/f.members(), "msgs/member")
	b.ReportMetric(spent.bytes/f.members(), "B/member")
	b.ReportMetric(float64(took.Milliseconds()), "ms-to-equal")
}

// benchJoin measures the join of an empty member.
func benchJoin(b *testing.B, f *fleet, idle pace) {
	before, began, cpu := f.all(), f.now, cpuTime()
	f.start(f.core())
	f.views()
	last := len(f.cores) - 1
	took := f.until(time.Minute, func() bool { return f.cores[last].Ready() && f.equal() })
	if !f.cores[last].Ready() {
		b.Fatal("not ready")
	}
	b.ReportMetric(float64((cpuTime() - cpu).Milliseconds()), "cpu-ms")
	f.rest()
	spent := f.since(before).less(idle, f.now.Sub(began))
	mine := f.sent[last]
	b.ReportMetric((spent.messages-float64(mine.messages))/f.members(), "msgs/member")
	b.ReportMetric((spent.bytes-float64(mine.bytes))/f.members(), "B/member")
	b.ReportMetric(float64(mine.messages), "newcomer-msgs")
	b.ReportMetric(float64(mine.bytes), "newcomer-B")
	b.ReportMetric(float64(took.Milliseconds()), "ms-to-ready")
}

// benchCrash measures the crash of a member that the others detect within a second.
func benchCrash(b *testing.B, f *fleet, idle pace) {
	before, began := f.all(), f.now
	f.cores[1] = nil
	f.views()
	f.rest()
	spent := f.since(before).less(idle, f.now.Sub(began))
	b.ReportMetric(spent.messages/f.members(), "msgs/member")
	b.ReportMetric(spent.bytes/f.members(), "B/member")
}

func (f *fleet) members() (n float64) {
	for _, c := range f.cores {
		if c != nil {
			n++
		}
	}
	return n
}

func (f *fleet) since(t tally) pace {
	now := f.all()
	return pace{messages: float64(now.messages - t.messages), bytes: float64(now.bytes - t.bytes)}
}

func (p pace) less(idle pace, d time.Duration) pace {
	return pace{messages: p.messages - idle.messages*d.Seconds(),
		bytes: p.bytes - idle.bytes*d.Seconds()}
}
