package bbolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/disk"
)

// This file reads bbolt's format, version 2, without trusting it: bbolt itself believes what a page
// says, and reads whatever memory that leads to. Numbers are in the machine's byte order.

const (
	pageSize    = 4096 // independent of the machine's page size
	pageHeader  = 16
	element     = 16
	branchFlag  = 1
	leafFlag    = 2
	bucketFlag  = 1 // of an element
	bucketSize  = 16
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 64                 // without the checksum, 56
	maxSpan     = 8 << 20 / pageSize // pages of one leaf: four rows at most are larger than a page
	maxDepth    = 32
)

var native = binary.NativeEndian

// meta is one of the two heads of a file, which are written in turn.
type meta struct {
	root, high, tx uint64 // page of the buckets, first unused page, transaction
}

// readMeta returns the newer head, and whether the other one is damaged.
func readMeta(f io.ReaderAt) (newest meta, otherDamaged bool, err error) {
	found := 0
	for i := range int64(2) {
		raw := make([]byte, pageHeader+metaSize)
		if _, err := f.ReadAt(raw, i*pageSize); err != nil && !errors.Is(err, io.EOF) {
			return meta{}, false, err
		}
		raw = raw[pageHeader:]
		sum := fnv.New64a()
		_, _ = sum.Write(raw[:56])
		if native.Uint32(raw) != metaMagic || native.Uint32(raw[4:]) != metaVersion ||
			native.Uint64(raw[56:]) != sum.Sum64() {
			continue
		}
		if size := native.Uint32(raw[8:]); size != pageSize {
			return meta{}, false, fmt.Errorf("pages of %d bytes, want %d", size, pageSize)
		}
		if m := (meta{native.Uint64(raw[16:]), native.Uint64(raw[40:]),
			native.Uint64(raw[48:])}); found == 0 || m.tx > newest.tx {
			newest = m
		}
		found++
	}
	if found == 0 {
		return meta{}, false, errors.New("both heads of the file are damaged")
	}
	return newest, found == 1, nil
}

// page is a leaf or a branch whose elements lie within it, in ascending order of their keys.
type page struct {
	raw   []byte
	leaf  bool
	count int
}

// readPage reads the page with this number, into buffer if it is large enough.
func readPage(f io.ReaderAt, id, high uint64, buffer []byte) (page, error) {
	if id < 2 || id >= high {
		return page{}, fmt.Errorf("page %d is not one of %d", id, high)
	}
	raw := slices.Grow(buffer[:0], pageSize)[:pageSize]
	if _, err := f.ReadAt(raw, int64(id)*pageSize); err != nil {
		return page{}, fmt.Errorf("page %d: %w", id, err)
	}
	if its := native.Uint64(raw); its != id {
		return page{}, fmt.Errorf("page %d claims to be page %d", id, its)
	}
	if span := uint64(native.Uint32(raw[12:])); span > 0 {
		if span >= maxSpan || id+span >= high {
			return page{}, fmt.Errorf("page %d claims %d further pages", id, span)
		}
		raw = slices.Grow(raw, int(span)*pageSize)[:pageSize+int(span)*pageSize]
		if _, err := f.ReadAt(raw[pageSize:], int64(id+1)*pageSize); err != nil {
			return page{}, fmt.Errorf("page %d: %w", id, err)
		}
	}
	p, err := parsePage(raw)
	if err != nil {
		return page{}, fmt.Errorf("page %d: %w", id, err)
	}
	return p, nil
}

func parsePage(raw []byte) (page, error) {
	if len(raw) < pageHeader {
		return page{}, errors.New("too short")
	}
	p := page{raw: raw, count: int(native.Uint16(raw[10:]))}
	switch flags := native.Uint16(raw[8:]); flags {
	case leafFlag:
		p.leaf = true
	case branchFlag:
		if p.count == 0 {
			return page{}, errors.New("an empty branch")
		}
	default:
		return page{}, fmt.Errorf("neither leaf nor branch (flags %#x)", flags)
	}
	if pageHeader+p.count*element > len(raw) {
		return page{}, fmt.Errorf("%d elements in %d bytes", p.count, len(raw))
	}
	for i := range p.count {
		if err := p.check(i); err != nil {
			return page{}, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return p, nil
}

// check reports whether an element lies within the page and after the previous one.
func (p page) check(i int) error {
	e := p.element(i)
	at, key, value := uint64(native.Uint32(e)), uint64(native.Uint32(e[4:])), uint64(0)
	if p.leaf {
		at, key, value = uint64(native.Uint32(e[4:])), uint64(native.Uint32(e[8:])),
			uint64(native.Uint32(e[12:]))
	}
	at += uint64(pageHeader + i*element)
	switch {
	case key == 0 || key > disk.MaxKey || value > disk.MaxValue:
		return fmt.Errorf("a key of %d bytes and a value of %d", key, value)
	case at < uint64(pageHeader+p.count*element) || at+key+value > uint64(len(p.raw)):
		return fmt.Errorf("%d bytes at %d, in a page of %d", key+value, at, len(p.raw))
	case i > 0 && bytes.Compare(p.key(i-1), p.key(i)) >= 0:
		return errors.New("not in order")
	}
	return nil
}

func (p page) element(i int) []byte { return p.raw[pageHeader+i*element:][:element] }

func (p page) key(i int) []byte {
	e, at := p.element(i), pageHeader+i*element
	if p.leaf {
		return p.raw[at+int(native.Uint32(e[4:])):][:native.Uint32(e[8:])]
	}
	return p.raw[at+int(native.Uint32(e)):][:native.Uint32(e[4:])]
}

// value returns the value of an element of a leaf.
func (p page) value(i int) []byte {
	e := p.element(i)
	return p.raw[pageHeader+i*element+int(native.Uint32(e[4:]))+int(
		native.Uint32(e[8:])):][:native.Uint32(e[12:])]
}

// bucket reports whether an element of a leaf holds a bucket.
func (p page) bucket(i int) bool { return native.Uint32(p.element(i))&bucketFlag != 0 }

// child returns the page number of an element of a branch.
func (p page) child(i int) uint64 { return native.Uint64(p.element(i)[8:]) }
