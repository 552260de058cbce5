package sim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Case is one history as a list: its acts, the random choices that are not harmless, and the
// messages that did not simply arrive. It does not depend on a seed, so it stays the same history
// if the generation of histories changes. Its text can be read and edited:
//
//	# not equal 30s after the faults ended
//	pick members 5
//	pick push at 8.21s 1.2ms
//	at 8.21s update 2 majority add s0/a 5
//	at 9s cut 0 1 for 3s
//	message 0>1 at 8.2112s lost
//	message 0>1 at 8.2112s #2 +31ms +200ms
//
// A pick without a time was made at the beginning. Of several picks of one name, or messages of one
// link, at the same time, #2 is the second. A message with two delays arrives twice.
type Case struct {
	Comment []string
	acts    []act
	picks   map[pickID]pick
	fates   map[letter]fate
}

type pickID struct {
	name string
	occasion
}

// pick is a choice and the type of its value.
type pick struct {
	as    pickKind
	value int64
}

type pickKind uint8

const (
	numeral pickKind = iota
	duration
	truth
)

// letter identifies a message.
type letter struct {
	link
	occasion
}

func newCase() *Case { return &Case{picks: map[pickID]pick{}, fates: map[letter]fate{}} }

// Acts returns the number of acts of the case.
func (c *Case) Acts() int { return len(c.acts) }

// Size returns the number of lines of the case, without comments.
func (c *Case) Size() int { return len(c.acts) + len(c.picks) + len(c.fates) }

func (p pick) String() string {
	switch p.as {
	case duration:
		return time.Duration(p.value).String()
	case truth:
		return "yes"
	}
	return strconv.FormatInt(p.value, 10)
}

func (o occasion) String() string {
	s := ""
	if o.at != 0 {
		s = " at " + o.at.String()
	}
	if o.n != 1 {
		s += " #" + strconv.Itoa(o.n)
	}
	return s
}

func (id pickID) String() string { return id.name + id.occasion.String() }

func (f fate) String() string {
	if f.copies == 0 {
		return "lost"
	}
	s := make([]string, f.copies)
	for i := range s {
		s[i] = "+" + f.extra[i].String()
	}
	return strings.Join(s, " ")
}

func (l letter) String() string { return fmt.Sprintf("%d>%d%v", l.from, l.to, l.occasion) }

func (c *Case) pickIDs() []pickID {
	return slices.SortedFunc(maps.Keys(c.picks), func(a, b pickID) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name), a.n-b.n)
	})
}

func (c *Case) letters() []letter {
	return slices.SortedFunc(maps.Keys(c.fates), func(a, b letter) int {
		return cmp.Or(cmp.Compare(a.at, b.at), a.from-b.from, a.to-b.to, a.n-b.n)
	})
}

// String returns the text of the case.
func (c *Case) String() string {
	var b strings.Builder
	for _, comment := range c.Comment {
		for line := range strings.SplitSeq(comment, "\n") {
			fmt.Fprintln(&b, strings.TrimRight("# "+line, " "))
		}
	}
	for _, id := range c.pickIDs() {
		fmt.Fprintf(&b, "pick %v %v\n", id, c.picks[id])
	}
	for _, a := range c.acts {
		fmt.Fprintf(&b, "at %v %s\n", a.at, a.text)
	}
	for _, l := range c.letters() {
		fmt.Fprintf(&b, "message %v %v\n", l, c.fates[l])
	}
	return b.String()
}

// ParseCase parses the text of a case. Its error names the line.
func ParseCase(text []byte) (*Case, error) {
	c := newCase()
	n := 0
	for raw := range bytes.Lines(text) {
		n++
		line := strings.TrimSpace(string(raw))
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			c.Comment = append(c.Comment, strings.TrimSpace(comment))
			continue
		}
		if line == "" {
			continue
		}
		if err := c.parse(line); err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", n, line, err)
		}
	}
	return c, nil
}

func (c *Case) parse(line string) error {
	words := strings.Fields(line)
	switch {
	case words[0] == "pick" && len(words) >= 3:
		return c.parsePick(words[1], words[2:])
	case words[0] == "at" && len(words) >= 3:
		at, err := parseSpan(words[1])
		c.acts = append(c.acts, act{at, strings.Join(words[2:], " ")})
		return err
	case words[0] == "message" && len(words) >= 3:
		return c.parseFate(words[1], words[2:])
	}
	return errors.New("want: pick NAME [at TIME] [#N] VALUE, at TIME VERB ARGUMENTS, or message FROM>TO [at TIME] [#N] lost|+TIME [+TIME]")
}

// parseOccasion parses the optional "at TIME" and "#N".
func parseOccasion(words []string) (o occasion, rest []string, err error) {
	o.n = 1
	if len(words) > 1 && words[0] == "at" {
		if o.at, err = parseSpan(words[1]); err != nil {
			return o, nil, err
		}
		words = words[2:]
	}
	if len(words) > 0 && words[0][0] == '#' {
		if o.n, err = strconv.Atoi(words[0][1:]); err != nil || o.n < 1 {
			return o, nil, fmt.Errorf("%q must be # and a number from 1", words[0])
		}
		words = words[1:]
	}
	return o, words, nil
}

func parseSpan(word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q must be a duration, and not negative", word)
	}
	return d, nil
}

func (c *Case) parsePick(name string, words []string) error {
	o, words, err := parseOccasion(words)
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return fmt.Errorf("pick %s: want one value", name)
	}
	p := pick{truth, 1}
	if n, err := strconv.ParseInt(words[0], 10, 64); err == nil {
		p = pick{numeral, n}
	} else if d, err := time.ParseDuration(words[0]); err == nil {
		p = pick{duration, int64(d)}
	} else if words[0] != "yes" {
		return fmt.Errorf("%q must be yes, a number or a duration", words[0])
	}
	c.picks[pickID{name, o}] = p
	return nil
}

func (c *Case) parseFate(where string, words []string) error {
	var l letter
	from, to, _ := strings.Cut(where, ">")
	a, err1 := strconv.Atoi(from)
	b, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%q must be two places, as in 0>1", where)
	}
	l.link = link{a, b}
	o, words, err := parseOccasion(words)
	if err != nil {
		return err
	}
	l.occasion = o
	if len(words) == 1 && words[0] == "lost" {
		c.fates[l] = fate{}
		return nil
	}
	f := fate{copies: len(words)}
	if f.copies < 1 || f.copies > len(f.extra) {
		return fmt.Errorf("message %s: want lost, or one or two delays", where)
	}
	for i, word := range words {
		if f.extra[i], err = parseSpan(strings.TrimPrefix(word, "+")); err != nil {
			return err
		}
	}
	c.fates[l] = f
	return nil
}

func (c *Case) clone() *Case {
	return &Case{Comment: c.Comment, acts: slices.Clone(c.acts), picks: maps.Clone(c.picks),
		fates: maps.Clone(c.fates)}
}
