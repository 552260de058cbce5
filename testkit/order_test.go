package testkit_test

import (
	"errors"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/runtime/protoiface"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// order is a message that is encoded as a different type.
type order struct{ item string }

func (o *order) Serialize() (remote.RootSerialized, error) {
	switch o.item {
	case "refused":
		return nil, errors.New("refused")
	case "lossy":
		return &wireOrder{wrapperspb.String("")}, nil
	}
	return &wireOrder{wrapperspb.String(o.item)}, nil
}

// wireOrder stands for a generated message that can be deserialized.
type wireOrder struct{ *wrapperspb.StringValue }

func (w *wireOrder) Deserialize() (remote.RootSerializable, error) { return &order{w.Value}, nil }

func (w *wireOrder) ProtoReflect() protoreflect.Message {
	return wireReflection{w.StringValue.ProtoReflect(), w}
}

type wireReflection struct {
	protoreflect.Message
	of *wireOrder
}

func (r wireReflection) Interface() protoreflect.ProtoMessage { return r.of }

func (r wireReflection) New() protoreflect.Message {
	return (&wireOrder{wrapperspb.String("")}).ProtoReflect()
}

func (r wireReflection) ProtoMethods() *protoiface.Methods { return nil }
