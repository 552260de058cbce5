package history

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Model is a sequential specification: the answers that a system in state S may give. S is compared
// with ==. Step must not retain or modify its arguments.
type Model[S comparable, I, O any] struct {
	Init S
	// Step returns the possible next states, or none if the system cannot have given this answer.
	// For an operation with an unknown outcome it returns every possible state, including the
	// unchanged one.
	Step func(s S, in I, out Outcome[O]) []S
	// Part returns the independent part of the system that the operation belongs to. If it is nil,
	// the system has a single part.
	Part func(in I) string
	// Describe describes an operation in the visualization. If it is nil, the fields are printed.
	Describe func(in I, out Outcome[O]) string
}

// patience bounds the search; a quick test takes seconds.
const patience = 20 * time.Second

// Linearizable reports whether the model accepts some order of the operations in which each takes
// effect between its begin and its end. It returns an error if it finds no answer within patience.
func Linearizable[S comparable, I, O any](m Model[S, I, O], ops []Operation[I, O],
	patience time.Duration) (bool, error) {
	ok, _, err := search(m, ops, patience)
	return ok, err
}

func search[S comparable, I, O any](m Model[S, I, O], ops []Operation[I, O],
	patience time.Duration) (bool, finding[S, I, O], error) {
	model := m.model()
	result, info := porcupine.CheckOperationsVerbose(model, entries(ops), patience)
	f := finding[S, I, O]{m, ops, model, info}
	if result == porcupine.Unknown {
		return false, f, fmt.Errorf(
			"no verdict on %d operations within %v: use more keys or fewer clients", len(ops),
			patience)
	}
	return result == porcupine.Ok, f, nil
}

// finding is the result of a search.
type finding[S comparable, I, O any] struct {
	model Model[S, I, O]
	ops   []Operation[I, O]
	drawn porcupine.Model
	info  porcupine.LinearizationInfo
}

// draw writes a page that shows how much of the history could be explained.
func (f finding[S, I, O]) draw(path string) error {
	return porcupine.VisualizePath(f.drawn, f.info, path)
}

// story lists the first operation that no explanation reaches, and the operations before it.
func (f finding[S, I, O]) story() string {
	reached := map[int64]bool{} // by the longest explanation of each part, by Call
	for _, part := range f.info.PartialLinearizationsOperations() {
		longest := slices.MaxFunc(append(part, nil), func(a, b []porcupine.Operation) int {
			return len(a) - len(b)
		})
		for _, o := range longest {
			reached[o.Call] = true
		}
	}
	var culprit *Operation[I, O]
	for i, o := range f.ops {
		if !reached[o.Call] && o.Output.Known && (culprit == nil || o.Return < culprit.Return) {
			culprit = &f.ops[i]
		}
	}
	if culprit == nil {
		return ending(Story(f.ops))
	}
	before := slices.DeleteFunc(slices.Clone(f.ops), func(o Operation[I, O]) bool {
		return o.Call > culprit.Return || f.model.Part != nil &&
			f.model.Part(o.Input) != f.model.Part(culprit.Input)
	})
	return ending(Story(before)) + fmt.Sprintf("no order of these explains: client %d: %v → %v\n",
		culprit.Client, culprit.Input, culprit.Output.Value)
}

// Check fails the test if no correct system could have produced the history. It prints the history
// and writes a page for a web browser that shows where the explanation ends. The page is in
// t.ArtifactDir with go test -artifacts, otherwise in a temporary file that is not removed.
func Check[S comparable, I, O any](t testing.TB, m Model[S, I, O], ops []Operation[I, O]) {
	t.Helper()
	ok, found, err := search(m, ops, patience)
	if err != nil {
		t.Fatalf("history: %v", err)
	}
	if ok {
		return
	}
	path, err := save(t, found.draw)
	if err != nil {
		path = fmt.Sprintf("(no picture: %v)", err)
	}
	t.Errorf("history: %d operations, not linearizable, picture in %s\n%s", len(ops), path,
		found.story())
}

// save writes the page to a file and returns its path.
func save(t testing.TB, draw func(path string) error) (string, error) {
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		path := filepath.Join(t.ArtifactDir(), "history.html")
		return path, draw(path)
	}
	f, err := os.CreateTemp("", "history-*.html") //nolint:usetesting // it must outlive the test
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(f.Close(), draw(f.Name()))
}

// ending returns the last lines of a story.
func ending(story string) string {
	lines := strings.SplitAfter(story, "\n")
	const most = 40
	if len(lines) <= most {
		return story
	}
	return "…\n" + strings.Join(lines[len(lines)-most:], "")
}

func entries[I, O any](ops []Operation[I, O]) []porcupine.Operation {
	out := make([]porcupine.Operation, 0, len(ops))
	for _, o := range ops {
		out = append(out, porcupine.Operation{ClientId: o.Client, Input: o.Input, Output: o.Output,
			Call: o.Call, Return: o.Return})
	}
	return out
}

func (m Model[S, I, O]) model() porcupine.Model {
	n := porcupine.NondeterministicModel{
		Init: func() []any { return []any{m.Init} },
		Step: func(state, in, out any) []any {
			next := m.Step(state.(S), in.(I), out.(Outcome[O]))
			states := make([]any, len(next))
			for i, s := range next {
				states[i] = s
			}
			return states
		},
		DescribeOperation: func(in, out any) string { return m.describe(in.(I), out.(Outcome[O])) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
	if m.Part != nil {
		n.Partition = m.partition
	}
	return n.ToModel()
}

func (m Model[S, I, O]) partition(all []porcupine.Operation) [][]porcupine.Operation {
	index := map[string]int{}
	var out [][]porcupine.Operation
	for _, o := range all {
		part := m.Part(o.Input.(I))
		i, ok := index[part]
		if !ok {
			i = len(out)
			index[part] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], o)
	}
	return out
}

func (m Model[S, I, O]) describe(in I, out Outcome[O]) string {
	switch {
	case m.Describe != nil:
		return m.Describe(in, out)
	case !out.Known:
		return fmt.Sprintf("%v → ?", in)
	}
	return fmt.Sprintf("%v → %v", in, out.Value)
}
