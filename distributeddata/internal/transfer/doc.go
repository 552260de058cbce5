// Package transfer moves answers between replicas: streams of bytes in parts, of which few are in
// flight [R18, R20], and before one, if that pays, the comparison that finds which keys differ
// [R22]. It knows neither what a stream says nor what a member may do: its owner makes the streams,
// reads them, encodes the messages, and says which members there are.
//
// A replica asks with In, which receives one answer at a time:
//
//	Begin ─▶ (Cells)* ─▶ (Part ─▶ More)* ─▶ Take
//
// Out answers any number of members, each once at a time:
//
//	Asked ─▶ Begin ─▶ (Cells)* ─▶ parts ─▶ (More ─▶ parts)*
//
// Every message may be lost, doubled or late. The receiver repeats how far it has got (Nudge), the
// sender sends again what has not arrived, and both give up when nothing has happened for Patience.
// The messages of an answer name the request and the number of the answer, since a sender that lost
// sight of the receiver may answer a request twice, from different states: the parts of two answers
// do not mix.
package transfer

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/sketch"
)

// Timing says how long things may take.
type Timing struct {
	Patience time.Duration // without progress, after which an answer is given up
	Grace    time.Duration // for which what others have seen may be in flight
	Pause    time.Duration // after a bad answer, before the next request
}

// Limits of an answer and of a comparison. If a replica has more keys or more differences,
// everything is sent.
const (
	// Credit is the number of parts that may be in flight at once. stride is the number of parts
	// made in one step, which bounds how long other work of the replica waits.
	Credit, stride = 12, 2
	// MaxBytes bounds an answer: it is more than a sender can hold in memory.
	MaxBytes int64 = 1 << 40
	// MaxCompared bounds the keys of a replica whose state is compared.
	MaxCompared = 4_000_000

	firstCells = 64
	maxCells   = 1 << 16
	// CellsAtOnce fit into one message.
	CellsAtOnce = 2048
)

// Part is a part of an answer.
type Part struct {
	Request, Answer uint64
	Index           int
	Last            bool
	Data            []byte
}

// More says that the parts before Next have arrived.
type More struct {
	Request, Answer uint64
	Next            int
}

// Compare asks the receiver of an answer for cells of its sketch.
type Compare struct {
	Request, Answer uint64
	From, Count     int
}

// Cells are cells of a sketch, from one on. Counts are told as differences from what is expected.
type Cells struct {
	Request, Answer uint64
	From            int
	Sums, Checks    []uint64
	Counts          []int64
}

func (m Cells) encode(cells []sketch.Cell, keys int) Cells {
	for i, x := range cells {
		m.Sums, m.Checks = append(m.Sums, x.Sum), append(m.Checks, x.Check)
		m.Counts = append(m.Counts, x.Count-sketch.Expected(keys, m.From+i))
	}
	return m
}

func (m Cells) decode(keys int) []sketch.Cell {
	cells := make([]sketch.Cell, len(m.Sums))
	for i := range cells {
		cells[i] = sketch.Cell{Count: m.Counts[i] + sketch.Expected(keys, m.From+i),
			Sum: m.Sums[i], Check: m.Checks[i]}
	}
	return cells
}
