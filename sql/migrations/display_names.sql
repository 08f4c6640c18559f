-- SPDX-License-Identifier: Apache-2.0
-- Sets the psql variable display_name: the regular expression of texts by which persons tell things apart. They have 1
-- to 200 characters, no control characters, of lines and of text direction neither, and not only blank ones: Unicode's
-- White_Space and Default_Ignorable_Code_Point, U+2800, and U+FFF9 to U+FFFB.
\set blank ' \\u00a0\\u00ad\\u034f\\u061c\\u115f\\u1160\\u1680\\u17b4\\u17b5\\u180b-\\u180f\\u2000-\\u200f'
\set blank :blank '\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb'
\set blank :blank '\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff'
\set control '\\u0001-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069'
\set display_name '^(?=.*[^' :blank '])[^' :control ']{1,200}$'
