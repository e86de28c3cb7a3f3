// The functions of {fmt}, compiled once for all that link core: in every file they would be a third of its compile time.
// The templates are those that {fmt} 9 declares and leaves to its library (its src/format.cc); later versions are used header-only.
#include <fmt/format.h>

#ifndef FMT_HEADER_ONLY
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float x) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double x) noexcept;
template locale_ref::locale_ref(const std::locale& loc);
template std::locale locale_ref::get<std::locale>() const;
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template thousands_sep_result<wchar_t> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template wchar_t decimal_point_impl(locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
#endif
