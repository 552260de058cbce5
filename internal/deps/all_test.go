//go:build deps

package deps
import (
	_ "github.com/asynkron/protoactor-go/actor"
	_ "github.com/asynkron/protoactor-go/cluster"
	_ "github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	_ "github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	_ "github.com/asynkron/protoactor-go/remote"
	_ "google.golang.org/grpc"
	_ "google.golang.org/protobuf/proto"
	_ "github.com/stretchr/testify/require"
	_ "pgregory.net/rapid"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sys/unix"
	_ "github.com/anishathalye/porcupine"
)
