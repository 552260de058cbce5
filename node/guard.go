package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// guard is of the process, since one member runs in it and gRPC knows nothing of systems.
var guard struct {
	refused atomic.Uint64
	log     atomic.Pointer[slog.Logger] // of the system that was started; nil: the default one
}

// Refused returns how many messages, batches and calls the guard of this process has refused.
func Refused() uint64 { return guard.refused.Load() }

// refuse counts, and logs the 1st, 2nd, 4th, 8th, … refusal: nobody can fill the log.
func refuse(what string, why any) {
	n := guard.refused.Add(1)
	if n&(n-1) != 0 {
		return
	}
	log := guard.log.Load()
	if log == nil {
		log = slog.Default()
	}
	log.Warn("refused by the guard", slog.String("what", what), slog.Any("reason", why), slog.Uint64("refused", n))
}

// refuseUnary refuses every unary call: Proto.Actor panics in all of them.
func refuseUnary(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
	refuse("remoting call refused", "not implemented")
	return nil, status.Error(codes.Unimplemented, "concord: not implemented")
}

// guardStream lets Proto.Actor see checked messages only, and turns a panic into the end of the stream.
func guardStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			refuse("remoting stream ended by a panic", r)
			err = status.Error(codes.Internal, "concord: internal error")
		}
	}()
	return handler(srv, &guarded{ServerStream: ss})
}

type guarded struct{ grpc.ServerStream }

// RecvMsg is called by one goroutine of the stream.
func (g *guarded) RecvMsg(m any) error {
	if err := g.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	msg, ok := m.(*remote.RemoteMessage)
	if !ok {
		refuse("remoting stream refused", "not a remoting message")
		return status.Error(codes.InvalidArgument, "concord: not a remoting message")
	}
	b := msg.GetMessageBatch()
	if b == nil {
		return nil
	}
	if err := checkBatch(b); err != nil {
		refuse("remoting batch refused", err)
		return status.Error(codes.InvalidArgument, err.Error())
	}
	b.Envelopes = slices.DeleteFunc(b.Envelopes, func(e *remote.MessageEnvelope) bool {
		why := refusal(b.TypeNames[e.TypeId], e.MessageData)
		if why == "" {
			return false
		}
		refuse("remoting message refused", why)
		return true
	})
	return nil
}

// checkBatch finds what Proto.Actor would use as an index without looking.
func checkBatch(b *remote.MessageBatch) error {
	for _, e := range b.Envelopes {
		switch {
		case e == nil:
			return fmt.Errorf("concord: no envelope")
		case e.TypeId < 0 || int(e.TypeId) >= len(b.TypeNames):
			return fmt.Errorf("concord: type %d of %d", e.TypeId, len(b.TypeNames))
		case e.Target < 0 || int(e.Target) >= len(b.Targets):
			return fmt.Errorf("concord: target %d of %d", e.Target, len(b.Targets))
		case e.Sender < 0 || int(e.Sender) > len(b.Senders):
			return fmt.Errorf("concord: sender %d of %d", e.Sender, len(b.Senders))
		case e.SerializerId != 0:
			// Proto.Actor always sends with 0, protobuf.
			return fmt.Errorf("concord: serializer %d", e.SerializerId)
		}
	}
	return nil
}

// refusal says why a message must not reach an actor; empty: it may.
func refusal(typeName string, data []byte) string {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(typeName))
	if err != nil {
		return "unknown type"
	}
	switch mt.Zero().Interface().(type) {
	case *actor.Watch:
		w := &actor.Watch{}
		if proto.Unmarshal(data, w) != nil || w.Watcher == nil {
			return "watch without watcher"
		}
	case *actor.Unwatch:
		w := &actor.Unwatch{}
		if proto.Unmarshal(data, w) != nil || w.Watcher == nil {
			return "unwatch without watcher"
		}
	case *actor.Terminated:
		w := &actor.Terminated{}
		if proto.Unmarshal(data, w) != nil || w.Who == nil {
			return "termination of nobody"
		}
	case *actor.PoisonPill:
		return "stops an actor"
	case actor.SystemMessage:
		return "system message"
	}
	return ""
}
