package core

// sketch estimates how often ids were used. Each id has a four-bit counter in each of four rows,
// and the smallest of the four is the estimate. A row has four counters for each entity that may
// run. After ten uses per such entity, all counters are halved.
type sketch struct {
	words []uint64 // 16 counters each, one row after the other
	uses  int
}

// maxSketch bounds the words of a sketch: 8 MiB.
const maxSketch = 1 << 20

// resize makes room for the given number of ids; if the sketch must grow, the counts are lost.
func (k *sketch) resize(ids int) {
	words := 4
	for words < maxSketch && words < ids {
		words *= 2
	}
	if words > len(k.words) {
		k.words, k.uses = make([]uint64, words), 0
	}
}

// at calls f with the word and the shift of each of the four counters of an id.
func (k *sketch) at(id string, f func(word *uint64, shift uint)) {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	rows := uint64(len(k.words) / 4)
	for row := range uint64(4) {
		h = scatter(h + row)
		f(&k.words[row*rows+h%rows], uint(h>>60)*4)
	}
}

func (k *sketch) count(id string) {
	if len(k.words) == 0 {
		return
	}
	k.at(id, func(word *uint64, shift uint) {
		if *word>>shift&15 < 15 {
			*word += 1 << shift
		}
	})
	if k.uses++; k.uses >= 10*len(k.words) {
		for i := range k.words {
			k.words[i] = k.words[i] >> 1 & 0x7777777777777777
		}
		k.uses /= 2
	}
}

// times returns the estimated number of uses of an id, at most 15.
func (k *sketch) times(id string) uint64 {
	least := uint64(15)
	if len(k.words) == 0 {
		return 0
	}
	k.at(id, func(word *uint64, shift uint) { least = min(least, *word>>shift&15) })
	return least
}
