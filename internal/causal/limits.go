package causal

// Limits of one state. Updates that exceed them fail, and so does data from peers and disks.
const (
	MaxDepth    = 16       // maximum nesting of maps and records
	MaxPath     = 64 << 10 // bytes of a path: an element or key with its prefix
	MaxPaths    = 1_000_000
	MaxReplicas = 1 << 20  // that ever changed a value used alone
	MaxState    = 16 << 20 // bytes of an encoded state, and of the paths and payloads in it
)
