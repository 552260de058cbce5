package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// event is one line of the input.
type event struct {
	Op   string `json:"op"`
	Cart string `json:"cart"`
	Item string `json:"item,omitempty"`
	Qty  int64  `json:"qty,omitempty"`
	ID   string `json:"id,omitempty"`
}

// Bounds of the input. A line that exceeds them is a bad line.
const (
	maxLine = 1 << 20
	maxCart = 500  // of a cart's name, escaped, which must fit into a key with its prefix
	maxName = 4096 // bytes of items and order ids
)

// validate returns an error if the event is invalid.
func (e event) validate() error {
	cart := checkName("cart", cartID(e.Cart), maxCart)
	switch e.Op {
	case "set":
		if e.Qty < 1 {
			return errors.Join(cart, checkName("item", e.Item, maxName),
				fmt.Errorf("qty is %d, must be 1 or more", e.Qty))
		}
		return errors.Join(cart, checkName("item", e.Item, maxName))
	case "remove":
		return errors.Join(cart, checkName("item", e.Item, maxName))
	case "clear":
		return cart
	case "checkout":
		return errors.Join(cart, checkName("id", e.ID, maxName))
	}
	return errors.Join(fmt.Errorf("op %q is none of set, remove, clear, checkout", e.Op), cart)
}

func checkName(field, v string, limit int) error {
	switch {
	case v == "":
		return fmt.Errorf("%s is missing", field)
	case len(v) > limit:
		return fmt.Errorf("%s has %d bytes, over the limit of %d", field, len(v), limit)
	}
	return nil
}

// readEvents returns the valid lines of r, and calls bad for each invalid one. It skips empty
// lines.
func readEvents(r io.Reader, bad func(line int, err error)) ([]event, error) {
	var events []event
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLong) {
			return events, err
		}
		if errors.Is(err, errLong) {
			bad(n, err)
			continue
		}
		if len(line) > 0 {
			if e, err := parse(line); err != nil {
				bad(n, err)
			} else {
				events = append(events, e)
			}
		}
		if errors.Is(err, io.EOF) {
			return events, nil
		}
	}
}

var errLong = fmt.Errorf("line is over %d bytes", maxLine)

// readLine returns the next line without its end, or errLong if the line is too long.
func readLine(in *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLong
		}
		return trimEnd(line), err
	}
}

func trimEnd(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r' ||
		line[len(line)-1] == ' ') {
		line = line[:len(line)-1]
	}
	return line
}

func parse(line []byte) (e event, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return e, err
	}
	return e, e.validate()
}

// carts is the state of a shop: the quantity of each item in each cart, without empty carts.
type carts map[string]map[string]int64

// result is the state of one node, in the format of --out.
type result struct {
	Carts  carts            `json:"carts"`
	Orders map[string]int64 `json:"orders"`
}

// fold applies events one after the other to plain maps and returns the state that the cluster must
// reach, and the ids of the checked-out orders.
func fold(events []event) (carts, map[string]bool) {
	all, ids := carts{}, map[string]bool{}
	for _, e := range events {
		switch e.Op {
		case "set":
			if all[e.Cart] == nil {
				all[e.Cart] = map[string]int64{}
			}
			all[e.Cart][e.Item] = e.Qty
		case "remove":
			delete(all[e.Cart], e.Item)
		case "clear":
			delete(all, e.Cart)
		case "checkout":
			ids[e.ID] = true
		}
	}
	maps.DeleteFunc(all, func(_ string, items map[string]int64) bool { return len(items) == 0 })
	return all, ids
}

// compare returns an error if a node's state is wrong: its carts must equal those of the fold, and
// its orders must number the checked-out ids 1, 2, 3 …, each as it was acknowledged.
func (r result) compare(want carts, ids map[string]bool, acknowledged map[string]int64) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !maps.Equal(r.Carts[name], want[name]) {
			errs = append(errs, fmt.Errorf("cart %q is %v, want %v", name, r.Carts[name],
				want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Carts)) {
		if want[name] == nil {
			errs = append(errs, fmt.Errorf("cart %q is %v, want nothing", name, r.Carts[name]))
		}
	}
	taken := map[int64]string{}
	for _, id := range slices.Sorted(maps.Keys(r.Orders)) {
		n := r.Orders[id]
		switch {
		case !ids[id]:
			errs = append(errs, fmt.Errorf("order %q was never checked out", id))
		case taken[n] != "":
			errs = append(errs, fmt.Errorf("orders %q and %q share number %d", taken[n], id, n))
		case n < 1 || n > int64(len(ids)):
			errs = append(errs, fmt.Errorf("order %q has number %d of %d", id, n, len(ids)))
		case acknowledged[id] != 0 && acknowledged[id] != n:
			errs = append(errs, fmt.Errorf("order %q has number %d, but %d was acknowledged", id, n,
				acknowledged[id]))
		}
		taken[n] = id
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if r.Orders[id] == 0 {
			errs = append(errs, fmt.Errorf("order %q is missing", id))
		}
	}
	return errors.Join(errs...)
}
