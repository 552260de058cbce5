package membership

import "crypto/sha256"

// After a split, members that do not list each other have to believe each other, or they stay
// apart. The address alone shows too little: when a member has died, anybody can listen there. So
// each process has a key, and derives from it one proof for each member. While it lists the member
// it sends the hash, which is its pledge, and once one of them does not list the other, the proof.
// The proof is of no use to anybody but the two: it names both addresses.

// proofSize is the length of a proof, and of a pledge, in bytes.
const proofSize = 16

// pledgeOf returns the pledge that belongs to a proof.
func pledgeOf(proof string) string {
	sum := sha256.Sum256([]byte(proof))
	return string(sum[:proofSize])
}

// familiar reports whether a hello from an address is of a process that we list or have listed, or
// that a member which we have listed has named. A member that has given no pledge is of a version
// before them. The sender of any other hello is a stranger: nothing confirms what it says about
// itself or about us.
func (c *core) familiar(address, proof string) bool {
	if !c.roster.lists(address) && c.lost.at(address) == nil {
		return false
	}
	pledge := c.roster.pledge(address)
	if l := c.lost.at(address); pledge == "" && l != nil {
		pledge = l.pledge
	}
	return pledge == "" || pledge == pledgeOf(proof)
}
