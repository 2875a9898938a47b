package text

import (
	"fmt"
	"time"
)

// When tells a moment in the past as people do: the clock today, the weekday within a week, else the date.
func (p *Printer) When(t time.Time) string {
	t, now := t.In(p.Zone), time.Now().In(p.Zone)
	clock := t.Format("15:04")
	switch days := daysBetween(t, now); {
	case days == 0:
		return p.T("date.today", "Clock", clock)
	case days > 0 && days < 7:
		return p.T("date.weekday", "Weekday", p.T(fmt.Sprintf("weekday.%d", t.Weekday())), "Clock", clock)
	}
	return p.T("date.when", "Date", p.Day(t), "Clock", clock)
}

// Day is the date without the clock.
func (p *Printer) Day(t time.Time) string {
	t = t.In(p.Zone)
	return p.T("date.day", "Day", fmt.Sprint(t.Day()), "Month", p.T(fmt.Sprintf("month.%d", t.Month())), "Year", fmt.Sprint(t.Year()))
}

// Clock is the time of day to the second.
func (p *Printer) Clock(t time.Time) string { return t.In(p.Zone).Format("15:04:05") }

// daysBetween counts the midnights from t to now, both in one zone.
func daysBetween(t, now time.Time) int {
	day := func(t time.Time) time.Time {
		y, m, d := t.Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	}
	return int(day(now).Sub(day(t)).Hours() / 24)
}

// ShortDay is the day beside a clock: the weekday within a week, else the date.
func (p *Printer) ShortDay(t time.Time) string {
	t, now := t.In(p.Zone), time.Now().In(p.Zone)
	switch days := daysBetween(t, now); {
	case days == 0:
		return p.T("date.this_day")
	case days > 0 && days < 7:
		return p.T(fmt.Sprintf("weekday.%d", t.Weekday()))
	}
	return p.Day(t)
}
