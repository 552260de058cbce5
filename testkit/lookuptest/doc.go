// Package lookuptest checks that an identity lookup of Proto.Actor activates each virtual actor
// once, in virtual clusters with faults.
//
//	func TestLookup(t *testing.T) {
//		lookuptest.Run(t, lookuptest.Config{
//			New: func(m *testkit.Member) (cluster.IdentityLookup, error) {
//				return grains.New(m.System, grains.Config{Session: m.Session, MinMembers: 2})
//			},
//		})
//	}
//
// # Rules
//
// Every failure message begins with the broken rule.
//
//   - L1: members that call at the same time find one activation.
//   - L2: grains are told apart by kind and identity, whatever characters these have.
//   - L3: after an activation has ended, a request of a member that has its PID reaches the next.
//   - L4: while members join and leave in order, no request fails.
//   - L5: after a crash, or while a member is frozen, every grain answers within Config.Within.
//   - L6: in a partition, and after it, no message is handled by an activation after another one
//     has handled a message. Each side has callers.
//   - L7: after a partition has healed, all members find one activation within Config.Within.
//   - L8: a kind that no member has is not found, and the caller is not kept.
//
// An activation that must have no effect any more may refuse a message, see Config.Check; refused
// messages do not count.
//
// docs/virtual-actors.md is the guide to virtual actors.
package lookuptest
