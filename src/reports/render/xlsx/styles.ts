/** How a cell of a workbook is shown; `money0` to `money4` by the currency's decimals, else in minor units. */
export type CellStyle =
  | "text"
  | "count"
  | "number"
  | "percent"
  | "day"
  | "month"
  | "time"
  | "minorUnits"
  | `money${0 | 1 | 2 | 3 | 4}`;

/** Number formats of ECMA-376, 18.8.30. */
const numberFormats: Readonly<Record<CellStyle, string>> = {
  text: "General",
  count: "#,##0",
  number: "General",
  percent: "0.00",
  day: "yyyy-mm-dd",
  month: "yyyy-mm",
  // Without its milliseconds the last one of a day would be rounded into the next.
  time: "yyyy-mm-dd hh:mm:ss.000",
  // The quotes are those of an attribute of XML.
  minorUnits: "#,##0&quot; minor units&quot;",
  money0: "#,##0",
  money1: "#,##0.0",
  money2: "#,##0.00",
  money3: "#,##0.000",
  money4: "#,##0.0000",
};

const styleNames = Object.keys(numberFormats) as CellStyle[];
/** Lower numbers are built in. */
const firstId = 164;

/** The number of a style in the sheet of styles: plain ones first, then the same in bold. Pure. */
export const styleNumber = (style: CellStyle, isBold: boolean): number =>
  styleNames.indexOf(style) + (isBold ? styleNames.length : 0);

/** `xl/styles.xml`. */
export const stylesXml = ((): string => {
  const numbered = styleNames.map(
    (name, n) => `<numFmt numFmtId="${firstId + n}" formatCode="${numberFormats[name]}"/>`,
  );
  const cells = [0, 1].flatMap((font) =>
    styleNames.map(
      (_, n) =>
        `<xf numFmtId="${firstId + n}" fontId="${font}" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1"/>`,
    ),
  );
  return `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts count="${numbered.length}">${numbered.join("")}</numFmts><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="${cells.length}">${cells.join("")}</cellXfs></styleSheet>`;
})();
