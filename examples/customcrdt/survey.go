package main

import (
	"fmt"

	"github.com/concord-go/concord/crdt"
)

// survey is a map of questions, each with a counter for every answer and a register for its
// headline. The map provides deltas and the removal of questions.
type survey = crdt.ORMap[string, question]

// question counts the answers to a question.
type question struct {
	Headline crdt.LWWRegister[string]
	votes    crdt.PNCounterMap[string]
}

// Vote counts an answer.
func (q *question) Vote(w *crdt.Writer, answer string) { q.votes.Add(w, answer, 1) }

// Retract takes a vote back.
func (q *question) Retract(w *crdt.Writer, answer string) { q.votes.Add(w, answer, -1) }

// Votes returns the count of an answer.
func (q question) Votes(answer string) int64 { return q.votes.Get(answer) }

func (q question) String() string { return fmt.Sprintf("%v %v", q.Headline, q.votes) }

// Merge merges part by part.
func (q question) Merge(o question) question {
	return question{q.Headline.Merge(o.Headline), q.votes.Merge(o.votes)}
}

// AppendBinary encodes part by part.
func (q question) AppendBinary(dst []byte) ([]byte, error) {
	dst, err := appendPart(dst, q.Headline)
	if err != nil {
		return dst, err
	}
	return appendPart(dst, q.votes)
}

// Decode decodes part by part.
func (q question) Decode(src []byte) (question, error) {
	headline, src, err := cutPart(src, q.Headline)
	if err != nil {
		return q, err
	}
	votes, src, err := cutPart(src, q.votes)
	if err != nil {
		return q, err
	}
	return question{headline, votes}, end(src)
}
