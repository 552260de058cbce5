package shell

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// extensionID is allocated once per process, since the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// planting guards our slot in the registry of every system, which is not synchronised.
var planting sync.Mutex

type plant struct{ at func(effect any) }

// ExtensionID implements extensions.Extension.
func (*plant) ExtensionID() extensions.ExtensionID { return extensionID }

// Plant makes every shell of a system that starts later call at before it carries out an effect, so
// that tests can make it panic there.
func Plant(system *actor.ActorSystem, at func(effect any)) {
	planting.Lock()
	defer planting.Unlock()
	system.Extensions.Register(&plant{at})
}

// planted returns the function of Plant, or nil.
func planted(system *actor.ActorSystem) func(effect any) {
	planting.Lock()
	defer planting.Unlock()
	if p, ok := system.Extensions.Get(extensionID).(*plant); ok {
		return p.at
	}
	return nil
}
