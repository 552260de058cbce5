package causal

// Limits of one state. Writers are refused at them, and so is what comes from peers and disks.
const (
	MaxDepth    = 16       // maps and records that lie in each other
	MaxPath     = 64 << 10 // bytes of a path: an element or key with what is before it
	MaxPaths    = 1_000_000
	MaxReplicas = 1 << 20  // that ever changed a value used alone
	MaxState    = 16 << 20 // bytes of an encoded state, and of the paths and payloads in it
)
