package crdt

import (
	"strconv"

	"github.com/concord-go/concord/internal/causal"
)

// EWFlag is a flag that is on or off. Enable wins over a concurrent disable: a disable removes only
// the enables it has seen. The zero value is off. Copies are snapshots.
//
// An EWFlag that is on costs about 40 bytes, and 24 more for each further replica that enabled it
// concurrently. An EWFlag that is off costs nothing.
//
// Use [DWFlag] if off must win.
type EWFlag struct{ view }

func (f *EWFlag) tag() causal.Tag { return causal.MakeTag(causal.EWFlag, causal.Custom) }

// Enable switches the flag on.
func (f *EWFlag) Enable(w *Writer) { f.say(w, f.tag(), "") }

// Disable switches the flag off.
func (f *EWFlag) Disable(w *Writer) {
	if f.open(w) {
		f.set(w, drop(w, f.store, f.base(nil, f.tag())))
	}
}

// Enabled reports whether the flag is on.
func (f EWFlag) Enabled() bool {
	_, ok := f.atoms(f.tag())
	return ok
}

// Merge returns the join of two states of the flag.
func (f EWFlag) Merge(o EWFlag) EWFlag { return EWFlag{f.merge(&o.view)} }

// Decode returns the flag encoded by AppendBinary.
func (f EWFlag) Decode(src []byte) (EWFlag, error) {
	v, err := decodeView(src, f.tag())
	if err != nil {
		return f, err
	}
	return EWFlag{v}, nil
}

// String returns true or false.
func (f EWFlag) String() string { return strconv.FormatBool(f.Enabled()) }

// MarshalJSON returns true or false.
func (f EWFlag) MarshalJSON() ([]byte, error) { return []byte(f.String()), nil }

// DWFlag is a flag that is on or off. Disable wins over a concurrent enable: the flag is on if it
// was enabled, and a later enable has seen each disable; different enables may have seen different
// ones. The zero value is off. Copies are snapshots.
//
// A DWFlag costs about 60 bytes once it was switched, on or off, and 40 more for each further
// replica that switched it concurrently.
//
// Use [EWFlag] if on must win.
type DWFlag struct{ view }

func (f *DWFlag) tag() causal.Tag { return causal.MakeTag(causal.DWFlag, causal.Custom) }

// Enable switches the flag on.
func (f *DWFlag) Enable(w *Writer) { f.say(w, f.tag(), "") }

// Disable switches the flag off, even if there are concurrent enables it has not seen.
func (f *DWFlag) Disable(w *Writer) { f.say(w, f.tag(), causal.Gone) }

// Enabled reports whether the flag is on.
func (f DWFlag) Enabled() bool {
	at, ok := f.atoms(f.tag())
	return ok && agreed(at)
}

// Merge returns the join of two states of the flag.
func (f DWFlag) Merge(o DWFlag) DWFlag { return DWFlag{f.merge(&o.view)} }

// Decode returns the flag encoded by AppendBinary.
func (f DWFlag) Decode(src []byte) (DWFlag, error) {
	v, err := decodeView(src, f.tag())
	if err != nil {
		return f, err
	}
	return DWFlag{v}, nil
}

// String returns true or false.
func (f DWFlag) String() string { return strconv.FormatBool(f.Enabled()) }

// MarshalJSON returns true or false.
func (f DWFlag) MarshalJSON() ([]byte, error) { return []byte(f.String()), nil }

// atoms returns the atoms of a value that lives at one path.
func (v *view) atoms(t causal.Tag) (causal.Entry, bool) {
	var buf [64]byte
	return v.store.Get(string(v.base(buf[:0], t)))
}

// say replaces all atoms of a value that lives at one path with a single payload.
func (v *view) say(w *Writer, t causal.Tag, payload string) {
	if !v.open(w) {
		return
	}
	var buf [64]byte
	next, err := put(w, v.store, v.base(buf[:0], t), causal.Leaf{Dot: w.dot, Payload: payload})
	if err != nil {
		w.Fail(err)
		return
	}
	v.set(w, next)
}
