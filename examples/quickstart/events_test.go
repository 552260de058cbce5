package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadEvents_SkipsBadLinesAndNamesThem(t *testing.T) {
	in := strings.Join([]string{
		`{"op":"set","cart":"c1","item":"milk","qty":2}`,
		`not json`,
		``,
		`{"op":"set","cart":"c1","item":"milk"}`,
		`{"op":"fly","cart":"c1"}`,
		`{"op":"set","cart":"c1","item":"` + strings.Repeat("x", maxLine) + `","qty":1}`,
		`{"op":"remove","cart":"c1"}`,
		`{"op":"checkout","cart":"茶","id":"e1"}` + "\r",
		`{"op":"clear","cart":"` + strings.Repeat("x", maxCart+1) + `"}`,
		`{"op":"clear","cart":"c1"}`, // no newline at the end
	}, "\n")
	var bad []int
	events, err := readEvents(strings.NewReader(in), func(line int, err error) {
		require.Error(t, err)
		bad = append(bad, line)
	})
	require.NoError(t, err)
	require.Equal(t, []int{2, 4, 5, 6, 7, 9}, bad)
	require.Equal(t, []event{
		{Op: "set", Cart: "c1", Item: "milk", Qty: 2},
		{Op: "checkout", Cart: "茶", ID: "e1"},
		{Op: "clear", Cart: "c1"},
	}, events)
}

func TestSample_IsLargeAndGood(t *testing.T) {
	events, bad, err := load("")
	require.NoError(t, err)
	require.Zero(t, bad)
	require.GreaterOrEqual(t, len(events), 5000)
}

func TestFold_LeavesEmptyCartsOut(t *testing.T) {
	got, ids := fold([]event{
		{Op: "set", Cart: "a", Item: "x", Qty: 1},
		{Op: "set", Cart: "a", Item: "x", Qty: 3},
		{Op: "set", Cart: "b", Item: "y", Qty: 1},
		{Op: "remove", Cart: "b", Item: "y"},
		{Op: "set", Cart: "c", Item: "z", Qty: 1},
		{Op: "clear", Cart: "c"},
		{Op: "checkout", Cart: "a", ID: "e1"},
		{Op: "checkout", Cart: "a", ID: "e1"},
	})
	require.Equal(t, carts{"a": {"x": 3}}, got)
	require.Equal(t, map[string]bool{"e1": true}, ids)
}

func TestCompare_SeesEveryKindOfDamage(t *testing.T) {
	want, ids := carts{"a": {"x": 1}}, map[string]bool{"e1": true, "e2": true}
	acked := map[string]int64{"e1": 1}
	good := func() result {
		return result{Carts: carts{"a": {"x": 1}}, Orders: map[string]int64{"e1": 1, "e2": 2}}
	}
	require.NoError(t, good().compare(want, ids, acked))
	for name, damage := range map[string]func(*result){
		"lost item":      func(r *result) { delete(r.Carts["a"], "x") },
		"other quantity": func(r *result) { r.Carts["a"]["x"] = 2 },
		"extra cart":     func(r *result) { r.Carts["b"] = map[string]int64{"y": 1} },
		"missing order":  func(r *result) { delete(r.Orders, "e2") },
		"gap":            func(r *result) { r.Orders["e2"] = 3 },
		"duplicate":      func(r *result) { r.Orders["e2"] = 1 },
		"swapped":        func(r *result) { r.Orders["e1"], r.Orders["e2"] = 2, 1 },
		"unknown order":  func(r *result) { r.Orders["e3"] = 2; delete(r.Orders, "e2") },
	} {
		r := good()
		damage(&r)
		require.Error(t, r.compare(want, ids, acked), fmt.Sprint(name))
	}
}

func TestFlags_SettleTheFault(t *testing.T) {
	for _, c := range []struct {
		flags
		kill, problem string
	}{
		{flags{}, "clerk", ""},
		{flags{durable: true}, "all", ""},
		{flags{durable: true, kill: "freeze"}, "freeze", ""},
		{flags{kill: "all"}, "", "needs -durable"},
		{flags{kill: "fire"}, "", `"fire" is none of`},
		{flags{out: "no such directory/state.json"}, "", "-out: "},
	} {
		err := c.settle()
		if c.problem != "" {
			require.ErrorContains(t, err, c.problem)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.kill, c.flags.kill)
	}
}
