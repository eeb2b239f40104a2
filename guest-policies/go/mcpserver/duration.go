package main

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"
)

var (
	errNoTimeout = errors.New("no duration of the Gateway API")
	errTooLong   = errors.New("longer than the Gateway API can express")
)

var units = []struct {
	name   string
	millis uint64
}{{"h", 3_600_000}, {"m", 60_000}, {"s", 1_000}, {"ms", 1}}

// forGateway returns a duration in a form that the Gateway API accepts, unchanged if possible. It splits a number with
// too many digits into several units: 100000s becomes 27h46m40s.
func forGateway(text string) (string, error) {
	const mostParts, mostDigits = 4, 5
	isDigit := func(c rune) bool { return '0' <= c && c <= '9' }
	parts, isShort, isLong, sum := 0, true, false, uint64(0)
	for rest := text; rest != ""; parts++ {
		digits := len(rest) - len(strings.TrimLeftFunc(rest, isDigit))
		number, after := rest[:digits], rest[digits:]
		end := strings.IndexFunc(after, isDigit)
		if end < 0 {
			end = len(after)
		}
		unit := uint64(0)
		for _, known := range units {
			if known.name == after[:end] {
				unit = known.millis
			}
		}
		if unit == 0 || digits == 0 || parts == mostParts {
			return "", errNoTimeout
		}
		isShort = isShort && digits <= mostDigits
		value, err := strconv.ParseUint(number, 10, 64)
		high, low := bits.Mul64(value, unit)
		total, carry := bits.Add64(sum, low, 0)
		isLong = isLong || err != nil || high > 0 || carry > 0
		sum, rest = total, after[end:]
	}
	switch {
	case parts == 0:
		return "", errNoTimeout
	case isShort:
		return text, nil
	case isLong:
		return "", errTooLong
	}
	var spelled strings.Builder
	for _, unit := range units {
		number := sum / unit.millis
		sum %= unit.millis
		if number > 99_999 {
			return "", errTooLong
		}
		if number > 0 {
			spelled.WriteString(strconv.FormatUint(number, 10) + unit.name)
		}
	}
	if spelled.Len() == 0 {
		return "0s", nil
	}
	return spelled.String(), nil
}
