package testkit

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// longest is the maximum length of a message in failure reports.
const longest = 300

// describe returns a message with its type, on one line.
func describe(m any) string {
	var s string
	switch m := m.(type) {
	case nil:
		return "nil"
	case *actor.PID:
		return name(m)
	case *actor.Terminated:
		return "*actor.Terminated{" + name(m.Who) + "}"
	case proto.Message:
		if n := proto.Size(m); n > 1<<16 {
			return fmt.Sprintf("%T of %d bytes", m, n)
		}
		// Normalize whitespace, which prototext deliberately varies.
		text, _ := prototext.MarshalOptions{}.Marshal(m)
		s = fmt.Sprintf("%T{%s}", m, strings.Join(strings.Fields(string(text)), " "))
	case error, fmt.Stringer:
		s = fmt.Sprintf("%T(%v)", m, m)
	case string:
		s = fmt.Sprintf("%q", m)
	default:
		if reflect.TypeOf(m).Kind() == reflect.Pointer ||
			reflect.TypeOf(m).Kind() == reflect.Struct {
			s = fmt.Sprintf("%T%s", m, strings.TrimPrefix(fmt.Sprintf("%+v", m), "&"))
		} else {
			s = fmt.Sprintf("%T(%v)", m, m)
		}
	}
	s = strings.ReplaceAll(s, "\n", " ")
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "…"
	}
	return s
}

// name returns the address and id of a PID.
func name(pid *actor.PID) string {
	if pid == nil {
		return "nobody"
	}
	return pid.Address + "/" + pid.Id
}

// typeName returns the name of the expected type.
func typeName[M any]() string { return reflect.TypeFor[M]().String() }

// short rounds a duration for display.
func short(d time.Duration) string {
	switch {
	case d > time.Minute:
		return d.Round(time.Second).String()
	case d > time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}
