// Package disk is the common part of the distributeddata stores on real disks, whichever database
// keeps their rows: the checks of a directory, its anchor, the encoding of rows with a checksum,
// the sum of all rows, group commit, loads, and the end of all acknowledgements after a failure. A
// store supplies an Engine.
//
// # Format 1
//
// A directory holds the file ANCHOR and the files of the engine, which map bytes to bytes. All
// numbers are little-endian; checksums are CRC-32C (Castagnoli).
//
//	ANCHOR, offset 0      "concord rows, badger, format 1\n", zeros up to 60 bytes, checksum of these 60
//	ANCHOR, offset 4096   slot: number of a commit (8 bytes), checksum of the 8
//	ANCHOR, offset 8192   the other slot; the slots are written in turn, and the larger number counts
//
//	key 'r' + key of row  a sealed row
//	key 'm'               the mark, sealed: number of the last commit (8), sum of all rows (4), difference reported by Load (4)
//
//	sealed                version 1 (1 byte), checksum of version, engine's key and value (4), value
//
// The sum of all rows is the exclusive or of their checksums. A file of another kind or of a later
// format is store.ErrForeign; a header with a wrong checksum is damage.
package disk
