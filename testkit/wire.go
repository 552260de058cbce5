package testkit

import (
	"reflect"
	"testing"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// maxMessage is the maximum size in bytes of a message between members: the default of gRPC.
const maxMessage = 4 << 20

// RoundTrip encodes msg as remoting does and returns the decoded message. It fails if msg could not
// be sent, for example because it has more than 4 MiB (remoting would only log that), or if the
// decoded message is not equal.
func RoundTrip[M any](t testing.TB, msg M) M {
	t.Helper()
	var none M
	var in any = msg
	if s, ok := in.(remote.RootSerializable); ok {
		wire, err := s.Serialize()
		if err != nil {
			t.Fatalf("%T does not serialise: %v", msg, err)
			return none
		}
		in = wire
	}
	sent, ok := in.(proto.Message)
	if !ok {
		t.Fatalf("%T is not a protobuf message: remoting would drop it", in)
		return none
	}
	got, problem := overTheWire(sent)
	if problem != "" {
		t.Fatalf("%s %s", describe(sent), problem)
		return none
	}
	var out any = got
	if s, ok := got.(remote.RootSerialized); ok {
		back, err := s.Deserialize()
		if err != nil {
			t.Fatalf("%T does not deserialise: %v", got, err)
			return none
		}
		out = back
		if !reflect.DeepEqual(any(msg), out) {
			t.Fatalf("%s arrives as %s", describe(msg), describe(out))
			return none
		}
	}
	m, ok := out.(M)
	if !ok {
		t.Fatalf("%s arrives as another type: %s", describe(msg), describe(out))
	}
	return m
}

// overTheWire encodes and decodes a message as remoting does.
func overTheWire(sent proto.Message) (got proto.Message, problem string) {
	raw, err := proto.Marshal(sent)
	if err != nil {
		return nil, "does not marshal: " + err.Error()
	}
	if len(raw) > maxMessage {
		return nil, "is too large to be sent: over 4 MiB"
	}
	if _, err := protoregistry.GlobalTypes.FindMessageByName(proto.MessageName(sent)); err != nil {
		return nil, "is of a type that is not registered: the receiver would not know it"
	}
	got = sent.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(raw, got); err != nil {
		return nil, "does not unmarshal: " + err.Error()
	}
	if !proto.Equal(sent, got) {
		return nil, "arrives as " + describe(got)
	}
	if len(got.ProtoReflect().GetUnknown()) > 0 {
		return nil, "arrives with fields that the receiver does not know"
	}
	return got, ""
}
