//go:build linux

package healtest_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// lived is the record of one instance of the singleton.
type lived struct {
	name         string
	token        uint64
	from         time.Duration
	acted, until time.Duration // when it was last allowed to act; its stop, or else acted
}

// readInstances reads the file to which all instances append.
func readInstances(path string) ([]lived, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	byName := map[string]*lived{}
	var order []string
	for line := range strings.Lines(string(text)) {
		var at time.Duration
		var token uint64
		var what, name string
		if _, err := fmt.Sscan(line, &at, &what, &token, &name); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		l := byName[name]
		if l == nil {
			l = &lived{name: name, token: token, from: at, acted: at}
			byName[name], order = l, append(order, name)
		}
		if what == "alive" {
			l.acted = max(l.acted, at)
		}
		l.until = max(l.until, at)
	}
	var all []lived
	for _, name := range order {
		all = append(all, *byName[name])
	}
	return all, nil
}

// twice returns pairs of instances that were alive at the same time. For a process that was frozen,
// only the times count at which the instance was allowed to act: it cannot stop while it is frozen.
func twice(all []lived, frozen func(name string) bool) (problems []string) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b lived) int { return int(a.from - b.from) })
	for i, a := range all {
		for _, b := range all[i+1:] {
			end := a.until
			if frozen(a.name) {
				end = a.acted
			}
			if end > b.from {
				problems = append(problems,
					fmt.Sprintf(
						"%s (token %d) lived from %v to %v, and was allowed to act until %v; %s (token %d) was started at %v", a.name, a.token, a.from, a.until, a.acted, b.name, b.token, b.from))
			}
			if b.token < a.token {
				problems = append(problems,
					fmt.Sprintf("%s has token %d, and %s, started later, %d", a.name, a.token,
						b.name, b.token))
			}
		}
	}
	return problems
}

// backwards returns requests that were answered under a lower token than one answered before they
// were sent.
func backwards(answers []answered) (problems []string) {
	answers = slices.Clone(answers)
	slices.SortFunc(answers, func(a, b answered) int { return int(a.At - b.At) })
	var tokens []uint64 // the highest so far, of answers by time
	for _, a := range answers {
		var token uint64
		if _, err := fmt.Sscan(a.By, &token); err != nil {
			problems = append(problems, fmt.Sprintf("answer %q: %v", a.By, err))
		}
		before, _ := slices.BinarySearchFunc(answers, a.Sent,
			func(x answered, at time.Duration) int {
				return int(x.At - at)
			})
		if before = min(before, len(tokens)); before > 0 && tokens[before-1] > token {
			problems = append(problems,
				fmt.Sprintf("sent at %v and answered by %q, after an answer under token %d", a.Sent,
					a.By, tokens[before-1]))
		}
		if n := len(tokens); n > 0 {
			token = max(token, tokens[n-1])
		}
		tokens = append(tokens, token)
	}
	return problems
}

// The checks must detect what they look for.
func TestChecks_SeeTwoInstances(t *testing.T) {
	never, always := func(string) bool { return false }, func(string) bool { return true }
	one := []lived{{"a", 1, 10, 20, 30}, {"b", 2, 30, 40, 40}}
	if p := twice(one, never); len(p) != 0 {
		t.Error(p)
	}
	both := []lived{{"a", 1, 10, 20, 31}, {"b", 2, 30, 40, 40}}
	if p := twice(both, never); len(p) != 1 {
		t.Errorf("two instances at one time: %v", p)
	}
	if p := twice(both, always); len(p) != 0 {
		t.Errorf("stopped late because it was frozen: %v", p)
	}
	if p := twice([]lived{{"a", 1, 10, 31, 31}, {"b", 2, 30, 40, 40}}, always); len(p) != 1 {
		t.Errorf("two that were allowed to act at one time: %v", p)
	}
	if p := twice([]lived{{"a", 2, 10, 20, 20}, {"b", 1, 30, 40, 40}}, never); len(p) != 1 {
		t.Errorf("tokens fall: %v", p)
	}
	if p := backwards([]answered{{1, 5, "1 a"}, {2, 6, "2 b"}, {3, 7, "1 a"}}); len(p) != 0 {
		t.Errorf("sent before it: %v", p)
	}
	if p := backwards([]answered{{1, 5, "1 a"}, {2, 6, "2 b"}, {7, 8, "1 a"}}); len(p) != 1 {
		t.Errorf("answered by the one before: %v", p)
	}
}
