// Package config reads one file, concord.yaml, that says how a process takes part in its cluster: the member, its leases,
// replicators, singletons and sharded entities.
//
//	node:
//	  cluster: shop
//	  host: ${POD_IP:-127.0.0.1}
//	  port: 7000
//	  provider: {class: automanaged, hosts: [10.0.0.1:6330, 10.0.0.2:6330]}
//	  lease: shop
//	leases:
//	  defaults: {heartbeat-timeout: 30s}
//	  shop: {lease-class: etcd, store: {endpoints: [10.0.0.9:2379]}}
//	replicators:
//	  carts: {min-members: 2, durable: ["*"], store: {class: bbolt, directory: /var/lib/shop}}
//	singletons:
//	  billing: {hand-over: 5s}
//	sharding:
//	  account: {shards: 512}
//
// The program says which kinds of providers and stores there are, so that it links no client that it does not need:
//
//	file, err := config.Load("concord.yaml", config.Kinds{
//		Providers: map[string]config.Provider{"automanaged": automanaged.Configured},
//		Leases:    map[string]coordination.Opener{"etcd": etcd.Opener},
//		Disks:     map[string]config.Disk{"bbolt": bbolt.Opener},
//	})
//	err = node.Run(ctx, file.Node, func(n *node.Node) error {
//		billing, err := file.Singleton("billing")
//		…
//	})
//
// # What is checked
//
// Everything, before anything runs, and all problems are told at once, with line and key. A key that is not known, or is
// there twice, is an error; the nearest known key is named. Values are checked as the Validate methods of the sections do.
// Nothing is opened, and no server is asked. A KeyError says what is wrong; what it quotes of a file is the value in
// question, so keep secrets in variables or files of their own.
//
// # Variables
//
// ${NAME} in a value is replaced by the environment variable, and ${NAME:-default} has a default, for a variable that is
// not set or empty; $$ stands for $. A variable that is not set and has no default is an error. What a variable holds is read as if it
// stood in the file, but it is always one value: it cannot become a list, or other keys. There is no other way in which
// the environment changes a setting.
//
// # What is understood of YAML
//
// Keys, values and lists, in one document of at most 1 MiB. Anchors, aliases, merges (<<) and tags are errors.
//
// docs/configuration.md lists all keys, and what cannot be set by a file.
package config
