package proto_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/concord-go/concord/internal/linear"
	pb "github.com/concord-go/concord/proto"
)

// The files in testdata/golden are encodings of every message by this version and earlier ones:
// members of both run together. Each has two lines for each set of fields that the message had:
// the values by number, and the bytes. They are kept for ever: a new field adds two lines, with
// UPDATE_GOLDEN=1, and nothing is changed or removed.

// messages returns every message of the package.
func messages() (all []protoreflect.MessageType) {
	for _, f := range []protoreflect.FileDescriptor{pb.File_concord_v1_crdt_proto,
		pb.File_concord_v1_envelope_proto, pb.File_concord_v1_membership_proto,
		pb.File_concord_v1_replication_proto, pb.File_concord_v1_sharding_proto,
		pb.File_concord_v1_singleton_proto} {
		for i := range f.Messages().Len() {
			typ, err := protoregistry.GlobalTypes.FindMessageByName(f.Messages().Get(i).FullName())
			if err != nil {
				panic(err)
			}
			all = append(all, typ)
		}
	}
	return all
}

// fill sets every field to a value that depends on its number.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case fd.IsMap():
			k := protoreflect.ValueOfString("key").MapKey()
			m.Mutable(fd).Map().Set(k, protoreflect.ValueOfString("value"))
		case fd.IsList():
			list := m.Mutable(fd).List()
			for j := range 2 {
				if fd.Message() != nil {
					fill(list.AppendMutable().Message(), depth+1)
				} else {
					list.Append(value(fd, j))
				}
			}
		case fd.Message() != nil:
			fill(m.Mutable(fd).Message(), depth+1)
		default:
			m.Set(fd, value(fd, depth))
		}
	}
}

// value returns a value that is not the default, and that takes several bytes where it can.
func value(fd protoreflect.FieldDescriptor, i int) protoreflect.Value {
	n := uint64(fd.Number())*300 + uint64(i)
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(n)
	case protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(n << 40)
	case protoreflect.Sint64Kind, protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(-int64(n))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprint("é", n))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0, byte(n), 0xff})
	}
	panic("no value of " + fd.Kind().String())
}

// describe returns the fields of a message by number, so that a field may be renamed.
func describe(m protoreflect.Message) string {
	fields := map[protoreflect.FieldNumber]string{}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		var one []string
		switch {
		case fd.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				one = append(one, fmt.Sprintf("%s=%s", k, v))
				return true
			})
			slices.Sort(one)
		case fd.IsList():
			for i := range v.List().Len() {
				one = append(one, describeValue(fd, v.List().Get(i)))
			}
		default:
			one = append(one, describeValue(fd, v))
		}
		fields[fd.Number()] = fmt.Sprintf("%d:%s", fd.Number(), strings.Join(one, ","))
		return true
	})
	var b []string
	for _, n := range slices.Sorted(maps.Keys(fields)) {
		b = append(b, fields[n])
	}
	return "{" + strings.Join(b, " ") + "}"
}

func describeValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case fd.Message() != nil:
		return describe(v.Message())
	case fd.Kind() == protoreflect.BytesKind:
		return hex.EncodeToString(v.Bytes())
	}
	return v.String()
}

func encode(t *testing.T, m protoreflect.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
	require.NoError(t, err)
	return b
}

func TestGolden_EveryMessageIsEncodedAsBefore(t *testing.T) {
	for _, typ := range messages() {
		name := string(typ.Descriptor().Name())
		path := filepath.Join("testdata", "golden", name+".txt")
		full := typ.New()
		fill(full, 0)
		text, err := os.ReadFile(path)
		present := describe(full) + "\n" + hex.EncodeToString(encode(t, full)) + "\n"
		if !strings.Contains("\n"+string(text), "\n"+present) && os.Getenv("UPDATE_GOLDEN") != "" {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			text = append(text, present...)
			err = os.WriteFile(path, text, 0o644)
		}
		require.NoError(t, err, "message %s has no golden file", name)
		require.Contains(t, "\n"+string(text), "\n"+present,
			"the encoding of message %s has changed, or it has a new field", name)
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		require.Zero(t, len(lines)%2, name)
		for i := 0; i < len(lines); i += 2 {
			b, err := hex.DecodeString(lines[i+1])
			require.NoError(t, err, name)
			got := typ.New()
			require.NoError(t, linear.Unmarshal(b, got.Interface()), name)
			require.Equal(t, lines[i], describe(got), name)
			require.Equal(t, lines[i+1], hex.EncodeToString(encode(t, got)), name)
		}
	}
}

func TestGolden_EveryFileIsOfAMessage(t *testing.T) {
	names := map[string]bool{}
	for _, typ := range messages() {
		names[string(typ.Descriptor().Name())+".txt"] = true
	}
	files, err := os.ReadDir(filepath.Join("testdata", "golden"))
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, names[f.Name()], "%s: members of earlier versions send it", f.Name())
	}
	schemas, err := filepath.Glob("*.proto")
	require.NoError(t, err)
	require.Len(t, schemas, 6, "add the new file to messages")
}

// A later version may add fields: this one ignores them.
func TestGolden_UnknownFieldsAreIgnored(t *testing.T) {
	for _, typ := range messages() {
		full := typ.New()
		fill(full, 0)
		later := protowire.AppendTag(encode(t, full), 1000, protowire.BytesType)
		later = protowire.AppendBytes(later, []byte("of a later version"))
		later = protowire.AppendTag(later, 1001, protowire.VarintType)
		later = protowire.AppendVarint(later, 7)
		got := typ.New()
		require.NoError(t, linear.Unmarshal(later, got.Interface()), typ.Descriptor().Name())
		require.Equal(t, describe(full), describe(got), typ.Descriptor().Name())
	}
}
