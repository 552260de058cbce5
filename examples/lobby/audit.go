package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/three"
)

// audit checks and prints what the persons have heard.
func (l *lobby) audit(ctx context.Context, out io.Writer, all []*person, left int,
	before coordination.Token) error {
	now, token := l.host("lobby")
	if now == left || token <= before {
		return fmt.Errorf("the lobby is at member %d under token %v, after member %d and token %v",
			now, token, left, before)
	}
	fmt.Fprintln(out, "another member hosts the lobby, under a later token")
	in, err := Present.Key("lobby").Get(ctx, l.dd[now], distributeddata.Majority)
	if err != nil {
		return err
	}
	if at, _ := in.Get("cid"); at == memberName(left) {
		return fmt.Errorf("cid is still connected to %s, which has left", at)
	}
	fmt.Fprintln(out, "cid is connected to another member; in the lobby:",
		list(slices.Collect(in.Keys())))

	lines := 1 + len(all)*each/len(rooms) // the first one is the usher's
	for _, room := range rooms {
		for _, p := range all {
			if err := three.Until(ctx, func() bool {
				return len(p.in(room)) >= lines
			}); err != nil {
				return fmt.Errorf("%s heard %d lines in %s: %w", p.name, len(p.in(room)), room, err)
			}
			if err := check(p.in(room), lines); err != nil {
				return fmt.Errorf("%s in %s: %w", p.name, room, err)
			}
			if !slices.Equal(p.in(room), all[0].in(room)) {
				return fmt.Errorf("%s and %s heard different lines in %s", p.name, all[0].name,
					room)
			}
		}
		fmt.Fprintf(out, "all heard %d lines in %s, numbered 1 to %d, in the same order\n",
			lines, room, lines)
	}
	if h := all[0].in("lobby"); h[0].token != before || h[lines-1].token != token {
		return fmt.Errorf("the lobby numbered lines under tokens %v to %v, and not %v to %v",
			h[0].token, h[lines-1].token, before, token)
	}
	fmt.Fprintln(out, "the lobby numbered lines at both members, and its tokens never fell")

	for _, p := range all {
		if err := p.exit(ctx); err != nil {
			return err
		}
	}
	in, err = Present.Key("lobby").Get(ctx, l.dd[now], distributeddata.Majority)
	if !errors.Is(err, distributeddata.ErrNotFound) { // an empty list is no entry
		return fmt.Errorf("in the lobby: %v: %w", in, err)
	}
	fmt.Fprintln(out, "they go; in the lobby: nobody")
	return nil
}

// check returns an error unless the numbers are 1, 2, 3 …, tokens never fall, and the lines of each
// person are in the order in which they were said, each once.
func check(all []heard, lines int) error {
	if len(all) != lines {
		return fmt.Errorf("%d lines, and not %d", len(all), lines)
	}
	nr, token := map[string]int{}, coordination.Token(0)
	for i, h := range all {
		if h.number != uint64(i+1) || h.token < token || h.line.Nr <= nr[h.line.From] {
			return fmt.Errorf("line %d is number %d of %s, under token %v after %v", i+1, h.number,
				h.line.From, h.token, token)
		}
		nr[h.line.From], token = h.line.Nr, h.token
	}
	return nil
}
